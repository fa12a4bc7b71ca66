#!/bin/sh
# Makes the certificates of the tests anew. They protect nothing: the keys are public, the names are of this machine.
#   ca.pem        the authority of server.pem and client.pem        stranger.pem   an authority that signed neither
#   server.pem    for 127.0.0.1, localhost and 10.246.0.1, by       client.pem     of the client "reports"
#                 which pods of the cluster tests know the machine
set -eu
cd "$(dirname "$0")"
key() { openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1.key"; }
authority() {
  key "$1"
  openssl req -x509 -key "$1.key" -subj "/CN=stairwise test $1" -days 36500 -out "$1.pem" \
    -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign
  [ "$1" = ca ] || rm "$1.key"
}
signed() {
  key "$1"
  openssl req -new -key "$1.key" -subj "/CN=$2" -addext "subjectAltName=$3" -out "$1.csr"
  openssl x509 -req -in "$1.csr" -CA ca.pem -CAkey ca.key -CAcreateserial -days 36500 -copy_extensions copy -out "$1.pem"
  rm "$1.csr"
}
authority ca
authority stranger
signed server localhost DNS:localhost,IP:127.0.0.1,IP:10.246.0.1
signed client reports DNS:reports
rm ca.key ca.srl
