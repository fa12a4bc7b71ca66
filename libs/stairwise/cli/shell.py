"""`stairwise completion`: what makes Tab work in a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

WHERE = {
    "bash": "~/.local/share/bash-completion/completions/stairwise",
    "zsh": "${fpath[1]}/_stairwise",
    "fish": "~/.config/fish/completions/stairwise.fish",
}


@click.command()
@click.argument("shell", type=click.Choice(list(WHERE)))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print what makes SHELL complete verbs, options, files, and the names of streams and queries.

    \b
    source <(stairwise completion bash)                                  for this shell
    stairwise completion bash > ~/.local/share/bash-completion/completions/stairwise
    stairwise completion zsh  > "${fpath[1]}/_stairwise"
    stairwise completion fish > ~/.config/fish/completions/stairwise.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(ctx.find_root().command, {}, "stairwise", "_STAIRWISE_COMPLETE").source())
