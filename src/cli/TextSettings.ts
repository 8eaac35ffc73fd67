/** The settings of the prompt and of the answer. */
import * as Flag from "effect/cli/Flag"
import * as Setting from "./Setting.ts"
import * as Values from "./Values.ts"

const outputs = ["text", "stream-json"] as const

export const settings = {
  print: Setting.toggle({
    name: "print",
    alias: "p",
    description: "Answer and exit, without asking for approvals",
    isKept: false
  }),
  outputFormat: Setting.choice({
    name: "output-format",
    words: outputs,
    description: "text: the answer. stream-json: one event per line. Default: text"
  }),
  json: Setting.toggle({
    name: "json",
    description: "The same as --output-format stream-json",
    isKept: false
  }),
  output: Setting.text({
    name: "output",
    alias: "o",
    metavar: "FILE",
    description: "Write the final answer to a file too",
    flag: Flag.File("output"),
    read: Values.nonEmpty,
    expected: "the path of a file",
    isKept: false
  })
}
