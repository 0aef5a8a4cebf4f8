"""Recognises files that tools execute or obey by themselves, by name.

Opening a project, or running the next command in it, must not run commands from a checkpoint
made elsewhere. No list can be complete, so `withheld` has a general rule as well.
"""

import re

from gitcp.format import safety


def folded(path: bytes) -> list[str]:
    """Returns the names in a path, in a form that all their spellings on any disk share."""
    return safety.spellings(path)


def words(text: str) -> frozenset[str]:
    """Returns the words of a text, as a set."""
    return frozenset(text.split())


# Everything below these directories, at any depth.
_DIRECTORIES = words(
    # agents
    """
    .agent .agents .aider .amazonq .augment .claude .claude-plugin .cline .clinerules
    .codex .codex-plugin .continue .copilot .crush .cursor .factory .gemini .goose .junie
    .kilo .kilocode .kiro .opencode .openhands .pi .qoder .qwen .roo .rules .trae
    .windsurf
    """
    # editors, and what they start when a folder is opened
    """
    .bsp .cargo .fleet .helix .idea .nova .nvim .settings .sublime .vim .vs .vscode
    .vscode-insiders .zed node_modules site-packages venv .venv virtualenv
    """
    # hooks, shells, version managers, other version control
    """
    .bzr .direnv .flox .githooks .git-hooks .hg .hooks .husky .jj .lefthook .mise .mvn
    .svn .yarn
    """
    # containers, cloud workspaces, CI
    """
    .buildkite .circleci .codesandbox .devcontainer .forgejo .gitea .github .gitlab
    .gitpod .idx .woodpecker
    """
)
_NAMES = words(
    # agents
    """
    crush.json kilo.json kilo.jsonc mcp.json opencode.json opencode.jsonc
    """
    # shells, version managers, environments
    """
    devbox.json devenv.nix devenv.yaml flake.lock flake.nix mise.local.toml mise.toml
    shell.nix default.nix
    """
    # interpreters and test runners that load from the directory they start in
    """
    bunfig.toml conftest.py deno.json deno.jsonc dodo.py fabfile.py gunicorn.conf.py
    ipython_config.py manage.py mypy.ini noxfile.py pixi.toml pylintrc pylintrc.toml
    pyproject.toml pytest.ini pytest.toml setup.cfg setup.py sitecustomize.py startup.m
    tasks.py tox.ini tox.toml toxfile.py usercustomize.py
    """
    # builds, which editors start too
    """
    artisan bb.edn bsdmakefile build.mill build.pl build.rs build.sc build.zig
    cabal.project capfile cargo.toml cmakelists.txt cmakepresets.json
    cmakeuserpresets.json composer.json config.ru dangerfile deps.edn dub.json dub.sdl
    dune dune-project ember-cli-build.js fastfile foundry.toml gatsby-config.js
    gatsby-node.js gemfile gems.rb gnumakefile gradlew gradlew.bat guardfile hie.yaml
    jenkinsfile justfile makefile makefile.pl meson.build mix.exs module.bazel mvnw
    package.json package.swift pnpm-workspace.yaml podfile pom.xml project.clj
    project.godot rakefile rebar.config rebar.config.script rust-toolchain
    rust-toolchain.toml sconscript sconstruct setup.hs setup.lhs shadow-cljs.edn
    stack.yaml steepfile thorfile tiltfile truffle-config.js vagrantfile workspace
    workspace.bazel wscript xmake.lua
    """
    # hook managers
    """
    hk.pkl lefthook-local.toml lefthook-local.yaml lefthook-local.yml lefthook.json
    lefthook.toml lefthook.yaml lefthook.yml prek.toml
    """
    # containers and CI
    """
    azure-pipelines.yml azure-pipelines.yaml bitbucket-pipelines.yml
    """
)
_ENDINGS = (
    *(".pth", ".code-workspace", ".mk", ".cmake", ".sbt", ".gradle", ".gradle.kts"),
    *(
        ".sln",
        ".slnx",
        ".csproj",
        ".fsproj",
        ".vbproj",
        ".vcxproj",
        ".props",
        ".targets",
    ),
    *(".gemspec", ".podspec", ".cabal", ".nimble"),
)
# Patterns here and elsewhere are compiled on first use, because that takes time.
# Families: a tool's own configuration that is a program, or names one.
_FAMILIES = r"""(?x)
      (astro|babel|commitlint|cypress|esbuild|eslint|jest|karma|knip|lint-staged|metro
      |next|nuxt|playwright|postcss|prettier|release|remix|rollup|rspack|stylelint|svelte
      |tailwind|tsup|turbo|vite|vitest|webpack|wdio)\.config\.\w+
    | [\w.-]+\.config\.[cm]?[jt]sx?
    | (gruntfile|gulpfile)\.\w+
    | (agents?|claude|codebuddy|codex|crush|gemini|iflow|qwen|replit|warp)(\.[\w-]+)*\.md
    | (phpstan\.neon|phpunit\.xml|psalm\.xml)(\.dist)?
    | jupyter(_\w+)?_config\.(json|py)
    | (docker-)?compose[\w.-]*\.ya?ml
    | (dist\.)?taskfile[\w.-]*\.ya?ml
    | directory\.(build|packages)\.(props|targets|rsp)
    | dockerfile[\w.-]* | containerfile[\w.-]*
    """
# FAT, NTFS and SMB servers have such a second name for each long one: `VSCODE~1` is
# `.vscode`. Only the disk knows which.
_SHORT = r"[^.~]{1,6}~[0-9]{1,6}(\.[^.]{1,3})?"
# Ends of paths, if the last name alone is not specific.
_TAILS = (
    *(("hooks", "hooks.json"), ("tools", "bazel"), ("mise", "config.toml")),
    *(("doc", "conf.py"), ("docs", "conf.py"), ("source", "conf.py")),
    ("renv", "activate.r"),
)
_BELOW = words("buildsrc gradle mise")

# Dot files by name, in addition to the general rule on dot paths: no answer of the user
# brings these, only trust does.
_DOT_NAMES = words(
    """
    .aider.conf.yml .augment-guidelines .augmentignore .autoenv .autoenv.zsh .bazelrc
    .bash_profile .bashrc .cirrus.yml .clinerules .crush.json .cursorrules
    .devcontainer.json .dir-locals-2.el .dir-locals.el .drone.yml .env
    .envrc .exrc .gdbinit .ghci .gitattributes .gitconfig
    .gitlab-ci.yml .gitmodules .gitpod.yml .goosehints .iex.exs .irbrc .justfile
    .lefthook-local.yaml .lefthook-local.yml .lefthook.json .lefthook.toml .lefthook.yaml
    .lefthook.yml .lfsconfig .lldbinit .lsp.json .luarc.json .lvimrc .mcp.json
    .mise.local.toml .mise.toml .npmrc .nvim.lua .nvimrc .ocamlinit .octaverc
    .overcommit.yml .pdbrc .pnpmfile.cjs .pnpmfile.mjs .pre-commit-config.yaml .profile
    .project .pryrc .pylintrc .replit .rprofile .rubocop.yml .rvmrc .stackblitzrc
    .tool-versions .travis.yml .vimrc .windsurfrules .worktreeinclude .yarnrc .yarnrc.yml
    .ycm_extra_conf.py .zprofile .zshenv .zshrc
    """
)
_DOT_FAMILIES = r"""(?x)
      \.(babelrc|eslintrc|lintstagedrc|mocharc|postcssrc|prettierrc|releaserc|stylelintrc
        |simple-git-hooks|swcrc)(\.\w+)?
    | \.(autoenv|augment|clinerules-|kilocode|roo|woodpecker)[\w.-]*
    | \.env[\w.-]*
    """


def executed(path: bytes) -> bool:
    """Whether tools execute or obey a file at this path by themselves."""
    parts = folded(path)
    name = parts[-1]
    return (
        name in _NAMES
        or name in _DOT_NAMES
        or name.endswith(_ENDINGS)
        or re.fullmatch(_FAMILIES, name) is not None
        or not _DIRECTORIES.isdisjoint(parts)
        or not _BELOW.isdisjoint(parts[:-1])
        or tuple(parts[-2:]) in _TAILS
        or any(
            re.fullmatch(_DOT_FAMILIES if one.startswith(".") else _SHORT, one)
            is not None
            for one in parts
        )
    )


def has_dot(path: bytes) -> bool:
    """Whether a name in a path begins with a dot."""
    return any(name.startswith(".") for name in folded(path))
