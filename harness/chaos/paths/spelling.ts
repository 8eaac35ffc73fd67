/**
 * Paths as a model might be talked into them: up and out, absolute, of other systems, encoded, with look-alikes of the
 * characters that matter, through links, and mixtures of all that.
 */
import type { Random } from "../Random.ts"

export interface Folders {
  readonly root: string
  readonly outside: string
}

const random = (random: Random, all: ReadonlyArray<string>): string => all[random.upTo(all.length - 1)] ?? ""

/** Where a path may begin. */
const starts = ({ outside, root }: Folders): ReadonlyArray<string> => [
  "",
  "",
  "",
  "./",
  "../",
  "/",
  "//",
  `${root}/`,
  `${root}/../`,
  `${outside}/`,
  `/proc/self/root${outside}/`,
  "/proc/self/cwd/",
  "/dev/fd/",
  "~/",
  "~root/",
  "file://",
  `file://${outside}/`,
  "FILE:/",
  "C:\\",
  "c:/",
  "\\\\?\\",
  "\\\\host\\share\\",
  "..\\"
]

/** Names of what is there, of what leads out, and of what only looks like it. */
const names = ({ outside, root }: Folders): ReadonlyArray<string> =>
  [
    ["..", "..", "..", ".", "", "...", "~", "a", "b", "c.txt", "root", "outside", "secret.txt", "new"],
    // Links, which `Ground` makes.
    ["up", "out", "file", "relative", "chain", "dangling", "loop", "proc", "slash", "inside", "hard.txt"],
    ["\0", "..\0", "secret.txt\0.png", "\\..", "..\\", "..\\..\\outside", "C:", "con", "nul"],
    ["%2e%2e", "%2e%2e%2f", "..%2f", "..%00", "..;", ".. ", " ..", "..\n", "..\r", "\t.."],
    // Full-width and other dots, slashes that are none, and what is not seen.
    [
      "．．",
      "‥",
      "․․",
      "。。",
      "..∕outside",
      "..／outside",
      "..⧸outside",
      "..\u200b",
      "\u202e..",
      "\ufeff.."
    ],
    ["ｏutside", "оutside", "secret．txt", "secret.t\u0445t", "SECRET.TXT", "se\u0301cret.txt"],
    [
      "-rf",
      "--",
      "$HOME",
      "${HOME}",
      "`id`",
      "$(id)",
      "*",
      "[.][.]",
      "{..,a}",
      "x".repeat(255),
      "x".repeat(300)
    ],
    [outside, root, `${outside}/secret.txt`, "proc/self/root", "dev/stdin", "etc/passwd"]
  ].flat()

const separators = ["/", "/", "/", "/", "//", "/./", "\\", "\\/"]

/** One more path. */
export const make = (dice: Random, folders: Folders): string => {
  const parts = Array.from({ length: 1 + dice.upTo(6) }, () => random(dice, names(folders)))
  return random(dice, starts(folders)) + parts.reduce((path, part) => path + random(dice, separators) + part)
}
