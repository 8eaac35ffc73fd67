/** The words of a command line before the library reads them, and advice on those that are nearly a command. */
import * as NearestName from "../internal/nearestName.ts"
import * as SettingTable from "./settings/SettingTable.ts"

/** Whether a value follows a flag, by its names. */
const flags: ReadonlyMap<string, boolean> = new Map(
  Object.values(SettingTable.all).flatMap(({ hasValue, names }) =>
    names.map((name) => [name, hasValue] as const)
  )
)

/** The words as the library reads them. */
export const read = (args: ReadonlyArray<string>, commands: ReadonlySet<string>): ReadonlyArray<string> => {
  const end = args.indexOf("--")
  const words = end === -1 ? args : args.slice(0, end)
  const read = commandFirst(words.map(asWord(commands)).flatMap(withResume), commands)
  return [...read, ...args.slice(words.length)]
}

/**
 * A text that is no flag and no command for sure, with a space before it that the prompt loses: `-p models`, and a text with a hyphen and a
 * space, such as `"- list the files"`.
 */
const asWord =
  (commands: ReadonlySet<string>) =>
  (arg: string, index: number, args: ReadonlyArray<string>): string => {
    const isAfterPrint = ["-p", "--print"].includes(args[index - 1] ?? "")
    const isText = /^-[^=]*\s/.test(arg)
    return isText || (isAfterPrint && commands.has(arg)) ? ` ${arg}` : arg
  }

/** Gives `--resume` without a session an empty one, which a person picks. */
const withResume = (arg: string, index: number, args: ReadonlyArray<string>): ReadonlyArray<string> => {
  const next = args[index + 1]
  const isBare = (arg === "-r" || arg === "--resume") && (next === undefined || /^-./.test(next))
  return isBare ? [arg, ""] : [arg]
}

/** Puts flags that stand before a command behind it, where the library reads them. */
const commandFirst = (args: ReadonlyArray<string>, commands: ReadonlySet<string>): ReadonlyArray<string> => {
  let index = 0
  while (index < args.length) {
    const arg = args[index] ?? ""
    if (commands.has(arg)) return [...args.slice(index), ...args.slice(0, index)]
    const hasValue = flags.get(arg.replace(/=.*$/s, ""))
    if (hasValue === undefined) return args
    index += hasValue && !arg.includes("=") ? 2 : 1
  }
  return args
}

/** The advice on a prompt of one word that is nearly a command, `undefined` if it is none, or `--` or `-p` says that it is a prompt. */
export const misspelling = (
  prompt: string,
  args: ReadonlyArray<string>,
  commands: ReadonlySet<string>
): string | undefined => {
  const isPrompt = ["--", "-p", "--print"].some((flag) => args.includes(flag))
  if (isPrompt || !/^[A-Za-z-]+$/.test(prompt)) return undefined
  const nearest = prompt === "help" ? "--help" : NearestName.of(prompt, commands)
  return nearest === undefined
    ? undefined
    : `There is no command ${prompt}. Did you mean effect-agent ${nearest}? To send the word as a prompt: effect-agent -- ${prompt}`
}
