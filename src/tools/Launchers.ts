/**
 * Arguments by which common programs run other programs, run code, or write files although they usually read.
 * The list covers programs that agents call and tricks that GTFOBins lists for them. It cannot be complete.
 */
import type { Words } from "./CommandLine.ts"

/**
 * The indices (into the arguments) that a `*` in a rule must not match. For a program that launches others
 * these are all arguments.
 */
export const hatches = ([program, ...args]: Words): ReadonlyArray<number> => {
  const name = program.split("/").at(-1) ?? program
  return launchers.has(name) ? Array.from(args.keys()) : (traps.get(name)?.(args) ?? [])
}

const launchers: ReadonlySet<string> = new Set(
  (
    "env xargs parallel sudo doas su runuser nohup nice ionice stdbuf setsid timeout time watch command builtin exec " +
    "eval source . chroot unshare nsenter flock script strace ltrace gdb valgrind busybox ssh entr expect trap " +
    "awk gawk mawk nawk ed ex vi vim nvim emacs dd tee " +
    // These change the meaning of the words after them.
    "alias enable hash export declare typeset local readonly set unset shopt"
  ).split(" ")
)

type Trap = (args: ReadonlyArray<string>) => ReadonlyArray<number>

/**
 * Arguments that match `form`, and long options by name: alone, with a value, or abbreviated, as many programs
 * permit.
 */
const flags =
  (form: RegExp, long = ""): Trap =>
  (args) => {
    const names = long.split(" ").filter((name) => name !== "")
    const isLong = (arg: string) => {
      const name = /^--([^=]+)/.exec(arg)?.[1]
      return name !== undefined && names.some((other) => other.startsWith(name) || name.startsWith(other))
    }
    return args.flatMap((arg, index) => (form.test(arg) || isLong(arg) ? [index] : []))
  }

/** `npx vitest *`: the first argument is the program. After options, any word can be the program. */
const firstArgument: Trap = (args) => (args[0]?.startsWith("-") === true ? Array.from(args.keys()) : [0])

// A sed script may run programs (`e`) and write files (`w`). These forms only print and replace.
const harmlessScript =
  /^(?:\d+|\$)?(?:,(?:\d+|\$))?[pdq=]$|^s([/|#,:@])(?:(?!\1)[^\\\n]|\\.)*\1(?:(?!\1)[^\\\n]|\\.)*\1[gpiI0-9]*$/

const sedArguments: Trap = (args) => {
  const script = args.findIndex((arg) => !arg.startsWith("-"))
  return args.flatMap((arg, index) => {
    const isHarmless = arg.startsWith("-")
      ? /^-[nErsuz]+$/.test(arg)
      : index !== script || harmlessScript.test(arg)
    return isHarmless ? [] : [index]
  })
}

const shell = flags(/^-[a-zA-Z]*[cis]/, "init-file rcfile")
const interpreter = flags(/^-[a-zA-Z]*[eEprcRi]/, "eval print require import loader command execute")
const packages = flags(/^(?:exec|x|dlx|explore|create|init|config|set)$/, "script-shell node-options")

const traps: ReadonlyMap<string, Trap> = new Map([
  ...["sh", "bash", "dash", "zsh", "ksh", "fish"].map((name) => [name, shell] as const),
  ...["node", "deno", "bun", "python", "python3", "perl", "ruby", "php", "lua"].map(
    (name) => [name, interpreter] as const
  ),
  ...["npx", "pnpx", "bunx", "uvx", "pipx"].map((name) => [name, firstArgument] as const),
  ...["npm", "pnpm", "yarn"].map((name) => [name, packages] as const),
  ["sed", sedArguments],
  ["find", flags(/^-(?:exec|ok|delete|fprint|fls)/)],
  ["fd", flags(/^-[a-zA-Z]*[xX]/, "exec exec-batch")],
  ["rg", flags(/^$/, "pre hostname-bin")],
  ["sort", flags(/^-[a-zA-Z]*[oT]/, "output compress-program temporary-directory")],
  [
    "git",
    flags(
      /^-[cCOx]|^-u$|^ext::|^(?:config|alias|bisect|filter-branch|submodule|difftool|mergetool)$/,
      "exec exec-path upload-pack receive-pack config-env output ext-diff textconv git-dir work-tree open-files-in-pager"
    )
  ],
  [
    "tar",
    flags(
      /^-?[a-zA-Z]*[IF]/,
      "to-command checkpoint-action use-compress-program info-script new-volume-script rsh-command"
    )
  ],
  ["rsync", flags(/^-[a-zA-Z]*e/, "rsh rsync-path")],
  ["zip", flags(/^-[a-zA-Z]*T/, "unzip-command")],
  [
    "curl",
    flags(/^-[a-zA-Z]*[oOKTcD]/, "output output-dir remote-name config upload-file cookie-jar dump-header")
  ],
  ["wget", flags(/^-[a-zA-Z]*[OPie]/, "output-document output-file use-askpass execute directory-prefix")],
  ["less", flags(/^\+|^-[a-zA-Z]*[oOk]/, "log-file LOG-FILE lesskey-file")],
  ["man", flags(/^-[a-zA-Z]*[PH]/, "pager html")],
  ["make", flags(/^-[a-zA-Z]*[fC]|=/, "eval file makefile directory")],
  ["printf", flags(/^-v/)]
])
