"""The pictures of docs/operations.md, taken of the demo at work: `make screenshots`.

```
plots       every dashboard of the chart, its queries drawn over the time that the demo has run
__main__    starts the system, Prometheus and the demo, takes the pictures, and ends everything again
```
"""
