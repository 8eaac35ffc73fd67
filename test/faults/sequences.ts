/**
 * What a terminal obeys, as somebody hostile would write it: into a title, a link, the clipboard, other people's eyes.
 */
const escape = "\u001b"
const stringEnds = ["\u0007", `${escape}\\`, "\u009c", ""]

/** Operating system commands: titles, links, the clipboard, colours, notifications, files. */
const commands = [
  "0;title",
  "1;icon",
  "2;title",
  "4;1;rgb:ff/00/00",
  "7;file:///etc",
  "8;;https://evil.example",
  "8;id=1;file:///etc/passwd",
  "9;notice",
  "10;?",
  "11;#000000",
  "50;font",
  "52;c;ZXZpbA==",
  "52;c;?",
  "104",
  "133;A",
  "777;notify;a;b",
  "1337;File=inline=1:AAAA"
].flatMap((body) =>
  [`${escape}]`, "\u009d"].flatMap((start) => stringEnds.map((end) => `${start}${body}${end}`))
)

/** Cursor, erasure, modes (DECSET), colours that hide, questions that the terminal answers into the input. */
const controls = [
  ..."A B C D E F G d H f J 2J 3J K 1K L M P X @ S T 5n 6n c >c r s u t".split(" "),
  ..."14t 20t 21t 8m 30;40m 7m 38;5;0m 1000000000A 10;10H 0;0f ?25l ?25h ?1000h ?1003h ?1006h".split(" "),
  ..."?1049h ?47h ?2004h ?5h ?7l 4h 20h !p >4;2m =c >q ?1;2c 2;1R 200~ 201~ 1;5P <0;1;1M ?996n".split(" ")
].flatMap((body) => [`${escape}[${body}`, `\u009b${body}`])

/** Device control, application, privacy and other strings. */
const strings = [
  "P$qm",
  "P+q544e",
  "Pq#0;2;0;0;0",
  "Ptmux;\u001b\u001b]0;x\u0007",
  "_Ga=T,f=100;AAAA",
  "^private",
  "Xstring"
]
  .flatMap((body) => stringEnds.map((end) => `${escape}${body}${end}`))
  .concat(["\u0090$qm\u009c", "\u0098x\u009c", "\u009ex\u009c", "\u009fGa=T;AA\u009c", "\u0090q"])

/** Escapes of two or three characters. */
const short = [
  "c",
  "7",
  "8",
  "D",
  "E",
  "M",
  "H",
  "Z",
  "=",
  ">",
  "N",
  "O",
  "n",
  "o",
  "|",
  "}",
  "~",
  "#8",
  "(0",
  ")B",
  "%G",
  " F"
].map((body) => escape + body)

/** One by one: all of C0 but tab and line end, delete, and all of C1. */
const single = Array.from({ length: 0xa0 }, (_, code) => String.fromCharCode(code))
  .filter((char) => char < " " || char > "~")
  .filter((char) => char !== "\n" && char !== "\t")

/** Cut off, nested, or hidden in one another. */
const odd = [
  escape,
  `${escape}[`,
  `${escape}]`,
  `${escape}${escape}[2J`,
  `${escape}[2\bJ`,
  `${escape}[\u0018J`,
  `${escape}]0;a\u001b]52;c;eA==\u0007`,
  `${escape}[31m${escape}[0m`,
  "safe\rrm -rf ~",
  "safe\b\b\b\bevil",
  "rm -rf ~\u001b[8D\u001b[K",
  "\u0085next line",
  "\u001b[1;31mA\u001b[0m\u202eB"
]

/** All of them: each is inert when no control character but tab and line end is left of it. */
export const hostile: ReadonlyArray<string> = [
  ...commands,
  ...controls,
  ...strings,
  ...short,
  ...single,
  ...odd
]

/** A text in two, at every place. */
export const splits = (text: string): ReadonlyArray<readonly [string, string]> =>
  Array.from({ length: text.length + 1 }, (_, at) => [text.slice(0, at), text.slice(at)])

/** Characters that a terminal would act on, tab and line end aside. */
export const active = (text: string): ReadonlyArray<string> => text.match(/(?![\n\t])\p{Cc}/gu) ?? []
