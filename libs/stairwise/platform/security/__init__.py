"""Who may call what: TLS, bearer tokens and certificates with scopes, limits, and the log of who changed what.

```
call ─▶ tls: is it the server, is it a known client? ─▶ access: who calls, with which scope?
                                                             │ scopes: the table of methods; tokens: the file
     method ◀─ caller: who it is, for all beneath ◀─ turns: within the limits?
        └─▶ audit: who changed what, who was refused
```
To which streams and queries a scope applies, ``wire.authority`` says. Everything is off by default, and a server then
listens on loopback alone.
"""
