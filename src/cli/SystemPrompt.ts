/** The default system prompt. */

/** `root` is the folder of the tools, `tools` the names of those that the model may call. */
export const make = (root: string, tools: ReadonlyArray<string>): string =>
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
