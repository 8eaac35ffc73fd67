/**
 * The folders in which the program keeps sessions.
 *
 * @since 0.2.0
 */
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Path from "effect/Path"

const variable = (name: string) => Config.option(Config.NonEmptyString(name))

/** A folder relative to the working directory is no place for data. */
const isAbsolute = (path: string): boolean => /^(\/|\\\\|[A-Za-z]:)/.test(path)

/**
 * The folder of the program's data: `EFFECT_AGENT_HOME`, else `effect-agent` in `XDG_DATA_HOME`, else `.local/share/effect-agent` in the
 * user's home.
 *
 * **Example** (Finding the folder)
 *
 * ```ts
 * import { ConfigProvider, Effect } from "effect"
 * import { SessionHome } from "effect-agent/sessions"
 *
 * const environment = ConfigProvider.fromUnknown({ HOME: "/home/ada" })
 * const program = Effect.gen(function* () {
 *   return yield* SessionHome.home
 * }).pipe(Effect.provideService(ConfigProvider.ConfigProvider, environment))
 *
 * console.log(await Effect.runPromise(program)) // => /home/ada/.local/share/effect-agent
 * ```
 *
 * @category constants
 * @since 0.2.0
 */
export const home: Config.Config<string> = Config.map(
  Config.all([
    variable("EFFECT_AGENT_HOME"),
    Config.map(variable("XDG_DATA_HOME"), Option.filter(isAbsolute)),
    variable("HOME"),
    variable("USERPROFILE")
  ]),
  ([own, data, home, profile]) =>
    Option.getOrElse(own, () =>
      Option.match(data, {
        onSome: (folder) => `${folder}/effect-agent`,
        onNone: () =>
          `${Option.getOrElse(home, () => Option.getOrElse(profile, () => "."))}/.local/share/effect-agent`
      })
    )
)

/**
 * Returns the name of the folder for the sessions of a working directory: its absolute path in letters that every file system takes,
 * and a part of its SHA-256.
 *
 * **Example** (Naming the folder)
 *
 * ```ts
 * import { Effect, Path } from "effect"
 * import { SessionHome } from "effect-agent/sessions"
 *
 * const program = Effect.provide(SessionHome.folderOf("/home/ada/my work"), Path.layer)
 *
 * console.log(await Effect.runPromise(program)) // => -home-ada-my-work-fcd02fe1
 * ```
 *
 * @category getters
 * @since 0.2.0
 */
export const folderOf = (cwd: string): Effect.Effect<string, never, Path.Path> =>
  Effect.gen(function* () {
    const paths = yield* Path.Path
    const path = paths.resolve(cwd)
    const digest = yield* Effect.promise(() =>
      crypto.subtle.digest("SHA-256", new TextEncoder().encode(path))
    )
    const hex = Array.from(new Uint8Array(digest).subarray(0, 4), (byte) =>
      byte.toString(16).padStart(2, "0")
    )
    return `${path.replace(/[^A-Za-z0-9._-]/gu, "-")}-${hex.join("")}`
  })
