/**
 * The environment variables of the commands that tools run: those of the process, without the ones that look
 * like secrets.
 *
 * A command of a model must not be able to print the API key that pays for the model.
 *
 * Detection uses names and values and is not complete: a secret with an innocent name and an innocent value
 * passes, and so do files in the home folder.
 *
 * @since 0.1.0
 */
import * as VendorText from "../http/VendorText.ts"

/**
 * Environment variables by name, as in `process.env`.
 *
 * A variable with the value `undefined` is not set.
 *
 * @since 0.1.0
 * @category models
 */
export type Environment = Readonly<Record<string, string | undefined>>

/**
 * Marks processes that an agent started.
 *
 * Other agent tools use this variable too.
 *
 * @since 0.1.0
 * @category constants
 */
export const marker = { AI_AGENT: "effect-agent" }

/**
 * Variables that keep a command from waiting for a person, who cannot see it.
 *
 * An editor ends at once and leaves its file as it is (`true` is a command that does nothing), a pager prints all, and git and the
 * installers of Debian fail or take their defaults in place of asking.
 *
 * @since 0.2.0
 * @category constants
 */
export const unattended: Readonly<Record<string, string>> = {
  EDITOR: "true",
  VISUAL: "true",
  GIT_EDITOR: "true",
  GIT_SEQUENCE_EDITOR: "true",
  PAGER: "cat",
  GIT_PAGER: "cat",
  MANPAGER: "cat",
  GIT_TERMINAL_PROMPT: "0",
  DEBIAN_FRONTEND: "noninteractive"
}

/** A variable that names an editor or a pager, such as `HGEDITOR` and `AWS_PAGER`, with the command in its place. */
const substitute = (name: string): string | undefined =>
  /(?:EDITOR|VISUAL)$/.test(name) ? "true" : name.endsWith("PAGER") ? "cat" : undefined

/**
 * Returns the environment variables of a command.
 *
 * **Details**
 *
 * - `inherited`: the variables of the process.
 * - `passed`: names of variables that are inherited as they are, although they look like secrets, or name an editor or a pager.
 *   Default: none.
 * - `added`: further variables, secrets or not. They replace inherited ones. Default: none.
 *
 * Variables that name an editor or a pager get commands that do not wait. `unattended` are added.
 *
 * **Example** (Removing a key)
 *
 * ```ts
 * import { ChildEnvironment } from "effect-agent/tools"
 *
 * const { EDITOR, OPENAI_API_KEY, PATH } = ChildEnvironment.make({ PATH: "/bin", EDITOR: "vim", OPENAI_API_KEY: "sk-123" })
 * console.log(PATH, EDITOR, OPENAI_API_KEY) // => /bin true undefined
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (
  inherited: Environment,
  options?: { readonly passed?: ReadonlyArray<string>; readonly added?: Environment }
): Record<string, string> => {
  const passed = options?.passed ?? []
  const secrets = new Set(withheld(inherited, passed))
  const kept = Object.entries(inherited).flatMap(([name, value]) =>
    secrets.has(name) ? [] : [[name, substitute(name) ?? value] as const]
  )
  const asked = passed.map((name) => [name, inherited[name] ?? unattended[name]] as const)
  const all = {
    ...Object.fromEntries(kept),
    ...marker,
    ...unattended,
    ...Object.fromEntries(asked),
    ...options?.added
  }
  return Object.fromEntries(
    Object.entries(all).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]))
  )
}

/**
 * Returns the names of the variables that a command does not get, since they look like secrets.
 *
 * **Example** (Naming what a command does not get)
 *
 * ```ts
 * import { ChildEnvironment } from "effect-agent/tools"
 *
 * console.log(ChildEnvironment.withheld({ PATH: "/bin", GITHUB_TOKEN: "ghp_1", NPM_TOKEN: "npm_1" }, ["NPM_TOKEN"]))
 * // => [ 'GITHUB_TOKEN' ]
 * ```
 *
 * @since 0.2.0
 * @category getters
 */
export const withheld = (inherited: Environment, passed: ReadonlyArray<string> = []): ReadonlyArray<string> =>
  Object.entries(inherited).flatMap(([name, value]) =>
    value !== undefined && !passed.includes(name) && isSecret(name, value) ? [name] : []
  )

/**
 * Whether a variable looks like a secret, by its name or its value.
 *
 * **Example** (Checking a variable)
 *
 * ```ts
 * import { ChildEnvironment } from "effect-agent/tools"
 *
 * console.log(ChildEnvironment.isSecret("GITHUB_TOKEN", "abc")) // => true
 * console.log(ChildEnvironment.isSecret("LANG", "en_US.UTF-8")) // => false
 * ```
 *
 * @since 0.1.0
 * @category predicates
 */
export const isSecret = (name: string, value: string): boolean =>
  !harmless.has(name) &&
  (secretName.test(name.toUpperCase()) || secretValue.test(value) || VendorText.isKey(value))

// Commands cannot run without most of these. `SSH_AUTH_SOCK` is the path of a socket that `git push` needs. It
// holds no key.
const harmless: ReadonlySet<string> = new Set([
  "PATH",
  "HOME",
  "PWD",
  "SHELL",
  "USER",
  "TMPDIR",
  "SSH_AUTH_SOCK"
])

// Words between underscores or at the end of a name. Variables with headers, DSNs and webhooks usually hold
// keys. `PWD` and `OLDPWD` hold folders, `MYSQL_PWD` holds a password.
const secretName = new RegExp(
  [
    "(?:^|_)(?:KEYS?|TOKENS?|PAT|JWT|PASS|AUTH|BEARER|COOKIES?|CREDS?|DSN|HEADERS|WEBHOOK)(?:_|$)",
    "(?:^|_)(?:PW|PIN|OTP|TOTP|SALT|MNEMONIC|UNSEAL|P12|PFX)(?:_|$)|(?:RECOVERY|BACKUP)_CODES?$|SEED_PHRASE",
    "(?:KEY|TOKEN|_PWD)$|^(?:SESSION|SESSIONID|SESSION_ID)$",
    "PASSWORD|PASSWD|PASSPHRASE|SECRET|CREDENTIAL|APIKEY|AUTHORIZATION|CONNECTION_STRING"
  ].join("|")
)

// A password or a key in a URL, a bearer token, user and password in base64, the first line of a private key, a signed token (JWT).
const secretValue = new RegExp(
  [
    ":\\/\\/[^\\s/:@]*:[^\\s/@]+@",
    ":\\/\\/\\S*[?&][\\w-]*(?:[Kk]ey|KEY|[Ss]ig|[Tt]oken|[Ss]ecret|[Pp]assword|[Aa]uth)[\\w-]*=[^&\\s]{8}",
    "\\bBearer\\s+\\S{8}",
    "\\bBasic\\s+(?=\\S*[A-Z0-9=])[A-Za-z0-9+/]{8}",
    "-----BEGIN [A-Z ]*PRIVATE KEY",
    "^eyJ[\\w-]+\\.eyJ"
  ].join("|")
)
