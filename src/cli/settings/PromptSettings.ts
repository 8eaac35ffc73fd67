/** The settings of a prompt, and of its answer. */
import * as Flag from "effect/cli/Flag"
import * as Setting from "./Setting.ts"
import * as Values from "./Values.ts"

const outputs = ["text", "json", "stream-json"] as const
const inputs = ["text", "stream-json"] as const

export const settings = {
  file: Setting.list({
    name: "file",
    alias: "f",
    metavar: "PATH",
    description: "Send this text, image or PDF with the prompt, as @PATH in the prompt does. May be repeated",
    read: Values.paths,
    expected: "the path of a file",
    flag: Flag.File("file"),
    isKept: false
  }),
  inputFormat: Setting.choice({
    name: "input-format",
    words: inputs,
    description:
      'text: stdin is a part of the prompt. stream-json: each line of stdin is an object: {"type":"prompt","text":"…"}, or of the type steer, followUp, approve, answer or cancel. Default: text',
    isKept: false
  }),
  print: Setting.toggle({
    name: "print",
    alias: "p",
    description:
      "Answer and exit, without asking for approvals. A stdout that is no terminal gets the answer alone, when it is whole",
    isKept: false
  }),
  outputFormat: Setting.choice({
    name: "output-format",
    words: outputs,
    description:
      "text: the answer. json: one object at the end. stream-json: one event per line. Default: text"
  }),
  json: Setting.toggle({
    name: "json",
    description: "The same as --output-format stream-json",
    isKept: false
  }),
  outputSchema: Setting.text({
    name: "output-schema",
    metavar: "FILE|JSON",
    description: "JSON Schema that the answer must match",
    read: Values.nonEmpty,
    expected: "a file, or an object of JSON",
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
