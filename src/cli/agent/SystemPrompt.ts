/** The system prompt. */
import * as Option from "effect/Option"
import type { Settings } from "../settings/Settings.ts"

/** `root` is the folder of the tools, `project` the instructions of the project. */
export const make = (
  root: string,
  project: string,
  { appendSystem, system, tools }: Pick<Settings, "appendSystem" | "system" | "tools">
): string =>
  [Option.getOrElse(system, () => usual(root, tools)), project, ...Option.toArray(appendSystem)]
    .filter((text) => text !== "")
    .join("\n\n")

const usual = (root: string, tools: ReadonlyArray<string>): string =>
  [
    `You work from a terminal, in the folder ${root}. Relative paths start there.`,
    ...(tools.length === 0
      ? []
      : [
          "Look with your tools before you say what is in a file or a folder, and say what you changed.",
          "A call that was refused stays refused: do not try to reach the same end in another way."
        ]),
    "Answer briefly, in plain text."
  ].join("\n")
