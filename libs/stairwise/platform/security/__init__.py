"""Who may call what: TLS, bearer tokens with scopes, limits, and the log of who defined what.

```
call ─▶ tls: is it the server, is it a known client? ─▶ access: whose token, which scope, within the limits?
                                                             │ scopes: the table of methods; tokens: the file
     method ◀────────────────────────────────────────────────┘ audit: who defined what, and how it ended
```
Everything is off by default, and a server then listens on loopback alone.
"""
