/** Command lines that a person pastes into the shell in which the program ran, with the flags that they need there. */
import * as Option from "effect/Option"
import type { Picks } from "../settings/SettingTable.ts"
import { flagOf, type From, type Picked } from "../settings/Source.ts"
import * as Values from "../settings/Values.ts"

export interface Pasted {
  /** The command that records an answer; `undefined` where a run waits at a server, and the next command answers it. */
  readonly approve?: (...words: ReadonlyArray<string>) => string
  /** The command that continues a session. */
  readonly resume: (sessionId: string) => string
}

/** The settings that are about one prompt, those that the session knows, and those of the place of the sessions. */
const left: ReadonlySet<string> = new Set([
  "file",
  "inputFormat",
  "print",
  "outputFormat",
  "json",
  "output",
  "continue",
  "resume",
  "fork",
  "noSession",
  "name",
  "cwd",
  "store",
  "sessionDir"
])

/** The commands for a session of a place. The flags of a run apply to the run that continues it too. */
export const of = (place: Picked<unknown>, picks: Partial<Picks> = {}): Pasted => {
  // The configuration of the user counts in each folder.
  const placed = typed(place, ({ kind }) => kind !== "user").map(Values.withoutPassword)
  const flags = Object.values(picks).flatMap((pick) =>
    left.has(pick.key) ? [] : typed(pick, ({ kind }) => kind === "flag")
  )
  return {
    approve: (...words) => line(["approve", ...words, ...placed]),
    resume: (sessionId) => line(["--resume", sessionId, ...placed, ...flags])
  }
}

/** The command for a session of a server. */
export const ofServer = (url: string): Pasted => ({
  resume: (sessionId) => line(["--url", url, "--resume", sessionId])
})

/** The flag of a value as a person types it. */
const typed = ({ found, key }: Picked<unknown>, isWanted: (from: From) => boolean): ReadonlyArray<string> =>
  Option.match(
    Option.filter(found, ({ from }) => isWanted(from)),
    {
      onNone: () => [],
      onSome: ({ texts, value }) =>
        value === true ? [flagOf(key)] : texts.flatMap((text) => [flagOf(key), text])
    }
  )

const line = (words: ReadonlyArray<string>): string => ["effect-agent", ...words.map(quoted)].join(" ")

/** A word that the shell reads as it is. */
export const quoted = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
