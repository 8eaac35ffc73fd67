/**
 * What a command is told of the environment: all of ours, less what looks like a secret. A model's command must not be
 * able to print, or send away, the key the model is paid with.
 *
 * Judged by name and by value, since names differ from house to house. It is a net, not a wall: a secret under an
 * innocent name with an innocent value passes, and files in the home folder are not the environment.
 */
import * as VendorKeys from "../internal/vendorKeys.ts"

/** Variables by name, as `process.env` has them; one that is undefined is not there. */
export type Environment = Readonly<Record<string, string | undefined>>

/** Marks processes that an agent started, for those that ask (a convention among agent tools). */
export const marker = { AI_AGENT: "effect-agent" }

/**
 * The environment for a command.
 *
 * - `inherited`: what the process has.
 * - `passed`: names that are inherited whatever they look like.
 * - `added`: goes on top, secrets or not.
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

/** Whether a variable looks like a secret, by its name or its value. */
export const isSecret = (name: string, value: string): boolean =>
  !harmless.has(name) &&
  (secretName.test(name.toUpperCase()) || secretValue.test(value) || VendorKeys.is(value))

// What a command cannot do without; and a socket, which `git push` needs and which holds no key.
const harmless: ReadonlySet<string> = new Set([
  "PATH",
  "HOME",
  "PWD",
  "SHELL",
  "USER",
  "TMPDIR",
  "SSH_AUTH_SOCK"
])

// Words between underscores, or at the end of a name; headers, DSNs and webhooks carry keys by custom.
// `PWD` and `OLDPWD` are folders, `MYSQL_PWD` is none.
const secretName = new RegExp(
  [
    "(?:^|_)(?:KEYS?|TOKENS?|PAT|JWT|PASS|AUTH|BEARER|COOKIES?|CREDS?|DSN|HEADERS|WEBHOOK)(?:_|$)",
    "(?:KEY|TOKEN|_PWD)$",
    "PASSWORD|PASSWD|PASSPHRASE|SECRET|CREDENTIAL|APIKEY|AUTHORIZATION|CONNECTION_STRING"
  ].join("|")
)

// A password or a key in a URL, a bearer token, the head of a private key, and what was signed (JWT).
const secretValue = new RegExp(
  [
    ":\\/\\/[^\\s/:@]*:[^\\s/@]+@",
    ":\\/\\/\\S*[?&][\\w-]*(?:[Kk]ey|KEY|[Ss]ig|[Tt]oken|[Ss]ecret|[Pp]assword|[Aa]uth)[\\w-]*=[^&\\s]{8}",
    "\\bBearer\\s+\\S{8}",
    "-----BEGIN [A-Z ]*PRIVATE KEY",
    "^eyJ[\\w-]+\\.eyJ"
  ].join("|")
)
