"""The chart on a real Kubernetes of one node, which these tests start and end (`make test-cluster`).

```
programs        what must be on the machine, and where it is
control_plane   etcd, API server, controllers, scheduler
node            containerd, kubelet, kube-proxy; the images
names           a DNS for the pods
traces          what is taken away from the machine in the end
release         helm and kubectl, and what the tests ask of the installed chart
```
"""
