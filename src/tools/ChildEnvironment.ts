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
import * as VendorKeys from "../internal/vendorKeys.ts"

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
 * Returns the environment variables of a command.
 *
 * **Details**
 *
 * - `inherited`: the variables of the process.
 * - `passed`: names of variables that are inherited although they look like secrets. Default: none.
 * - `added`: further variables, secrets or not. They replace inherited ones. Default: none.
 *
 * **Example** (Removing a key)
 *
 * ```ts
 * import { ChildEnvironment } from "effect-agent/tools"
 *
 * console.log(ChildEnvironment.make({ PATH: "/bin", OPENAI_API_KEY: "sk-123" }))
 * // => { PATH: '/bin', AI_AGENT: 'effect-agent' }
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (
  inherited: Environment,
  options?: { readonly passed?: ReadonlyArray<string>; readonly added?: Environment }
): Record<string, string> => {
  const passed = new Set(options?.passed)
  const kept = Object.entries(inherited).filter(
    ([name, value]) => passed.has(name) || !isSecret(name, value ?? "")
  )
  const all = { ...Object.fromEntries(kept), ...marker, ...options?.added }
  return Object.fromEntries(
    Object.entries(all).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]))
  )
}

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
  (secretName.test(name.toUpperCase()) || secretValue.test(value) || VendorKeys.is(value))

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
    "(?:KEY|TOKEN|_PWD)$",
    "PASSWORD|PASSWD|PASSPHRASE|SECRET|CREDENTIAL|APIKEY|AUTHORIZATION|CONNECTION_STRING"
  ].join("|")
)

// A password or a key in a URL, a bearer token, the first line of a private key, a signed token (JWT).
const secretValue = new RegExp(
  [
    ":\\/\\/[^\\s/:@]*:[^\\s/@]+@",
    ":\\/\\/\\S*[?&][\\w-]*(?:[Kk]ey|KEY|[Ss]ig|[Tt]oken|[Ss]ecret|[Pp]assword|[Aa]uth)[\\w-]*=[^&\\s]{8}",
    "\\bBearer\\s+\\S{8}",
    "-----BEGIN [A-Z ]*PRIVATE KEY",
    "^eyJ[\\w-]+\\.eyJ"
  ].join("|")
)
