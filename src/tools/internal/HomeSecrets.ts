/** The places in the home folder where programs keep what no command of a model needs to read. */
import type { Environment } from "../ChildEnvironment.ts"

const words = (text: string): ReadonlyArray<string> => text.split(" ")
const within = (folder: string, names: ReadonlyArray<string>) => names.map((name) => `${folder}/${name}`)

/** Programs made with Electron and browsers, which keep cookies and tokens in a folder of their name. */
const applications = [
  ...words("google-chrome chromium BraveSoftware microsoft-edge vivaldi opera"),
  ...words("Code VSCodium Cursor Windsurf sublime-text JetBrains zed"),
  ...words("Slack Signal discord Bitwarden keepassxc"),
  "Bitwarden CLI",
  "Code - Insiders",
  "Ledger Live"
]

export const names: ReadonlyArray<string> = [
  // This program: conversations of all projects, logs of runs, and the configuration of the user.
  ...words(".local/share/effect-agent .config/effect-agent"),
  // Keys for other machines, and for signatures.
  ...words(".ssh .gnupg .password-store .1password .config/op .local/share/keyrings .putty .age"),
  ...words(".local/share/kwalletd Library/Keychains .vault-token .netrc .vault_pass .ansible/vault"),
  ...words(".config/sops .config/filezilla .local/share/remmina .config/remmina .env"),
  // Accounts at clouds and services.
  ...words(".aws .azure .oci .kube .docker .fly .boto .s3cfg .databrickscfg .snowflake .dbt"),
  ...words(".config/gcloud .config/doctl .config/rclone .config/containers .config/heroku .config/hcloud"),
  ...words(".terraform.d .terraformrc .wrangler .config/.wrangler .railway .netlify .vercel .expo"),
  ...words(".local/share/com.vercel.cli .config/stripe .config/turso .config/linode-cli .config/helm"),
  ...words(".ngrok2 .config/ngrok .config/configstore .config/transmission"),
  // Accounts at places for code, packages and data.
  ...words(".npmrc .yarnrc.yml .pypirc .cargo/credentials .cargo/credentials.toml .gem/credentials"),
  ...words(".git-credentials .config/git/credentials .config/gh .config/glab-cli .config/hub"),
  ...words(".m2/settings.xml .m2/settings-security.xml .gradle/gradle.properties .bundle/config"),
  ...words(".composer/auth.json .config/composer/auth.json .nuget/NuGet/NuGet.Config .config/NuGet"),
  ...words(".cache/huggingface/token .cache/huggingface/stored_tokens .huggingface/token .kaggle"),
  ...words(".config/rubygems .local/share/gem/credentials .config/pip .pip .config/pypoetry/auth.toml"),
  ...words(".config/hatch .config/uv/credentials.toml .local/share/uv/credentials"),
  // Databases.
  ...words(".pgpass .my.cnf .mylogin.cnf .mongorc.js .mongodb"),
  // Agents.
  ...words(".claude .claude.json .codex .gemini .config/github-copilot .local/share/opencode .cursor .kiro"),
  ...words(
    ".config/opencode .continue .pi .config/goose .local/share/goose .config/crush .local/share/crush"
  ),
  ...words(".aider.conf.yml .anthropic .config/anthropic .config/openai .qwen .codeium .amazonq .factory"),
  // Browsers, mail, editors, messengers and wallets.
  ...words(".mozilla .thunderbird snap .var/app .vscode-server/data .cursor-server/data"),
  ...words("Library/Cookies Library/Mail Library/Messages Library/Safari"),
  ...words(".bitcoin .ethereum .electrum .solana .config/solana .monero"),
  ...within(".config", applications),
  ...within("Library/Application Support", [...applications, ...words("Google/Chrome Firefox")]),
  // Histories, in which people type passwords.
  ...words(".bash_history .zsh_history .python_history .node_repl_history .psql_history .irb_history"),
  ...words(".mysql_history .sqlite_history .sqlcmd_history .rediscli_history .xonsh_history .lesshst"),
  ...words(".viminfo .wget-hsts .local/share/fish/fish_history .local/share/atuin .local/state/bash"),
  ...words(".local/share/nvim/shada .local/state/nvim/shada")
]

/** Folders in hidden ones that commands need: skills of the user have programs. */
export const shown: ReadonlyArray<string> = [".config/effect-agent/skills"]

/** The folders of the home that a variable can name elsewhere. */
const moved = {
  ".config": "XDG_CONFIG_HOME",
  ".local/share": "XDG_DATA_HOME",
  ".local/state": "XDG_STATE_HOME",
  ".cache": "XDG_CACHE_HOME"
}

/** The absolute paths of names in the home folder, and in the folders that variables name in its place. */
export const paths = (env: Environment, names: ReadonlyArray<string>): ReadonlyArray<string> => {
  const { HOME = "" } = env
  const elsewhere = Object.entries(moved).flatMap(([folder, variable]) => {
    const place = env[variable] ?? ""
    if (!place.startsWith("/") || place === `${HOME}/${folder}`) return []
    return names.flatMap((name) =>
      name.startsWith(`${folder}/`) ? [`${place}${name.slice(folder.length)}`] : []
    )
  })
  return [...(HOME === "" ? [] : within(HOME, names)), ...elsewhere]
}
