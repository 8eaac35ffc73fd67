/** The settings of the session that a run belongs to. */
import * as Flag from "effect/cli/Flag"
import * as Option from "effect/Option"
import * as Setting from "./Setting.ts"
import * as StoreAddress from "../agent/StoreAddress.ts"
import * as Values from "./Values.ts"

const expected = "the id of a session, or its beginning"

export const settings = {
  continue: Setting.toggle({
    name: "continue",
    alias: "c",
    description: "Continue the newest session of this folder, with its model",
    isKept: false
  }),
  resume: Setting.text({
    name: "resume",
    alias: "r",
    metavar: "SESSION",
    description:
      "Continue this session, of which the beginning of the id is enough, in its folder and with its model; without a prompt what is open in it, such as approved calls. Without a session: pick one",
    read: Option.some,
    expected,
    isKept: false
  }),
  fork: Setting.text({
    name: "fork",
    metavar: "SESSION",
    description: "Continue in a new session that begins as this one",
    read: Values.nonEmpty,
    expected,
    isKept: false
  }),
  noSession: Setting.toggle({ name: "no-session", description: "Keep no session" }),
  sessionDir: Setting.text({
    name: "session-dir",
    metavar: "DIR",
    description:
      "Folder of the session files. Default: one for each folder of the tools, in the home of the program",
    flag: Flag.Directory("session-dir"),
    read: Values.nonEmpty,
    expected: "a folder",
    // Conversations may hold what the project must not get.
    rules: { widens: () => true }
  }),
  store: Setting.text({
    name: "store",
    metavar: "STORE",
    description:
      "Place of the sessions: sqlite:FILE, postgres://USER@HOST/DATABASE, or a folder of files. Default: files in the home of the program",
    read: StoreAddress.read,
    expected: StoreAddress.expected,
    rules: { widens: () => true }
  }),
  name: Setting.text({
    name: "name",
    metavar: "TEXT",
    description: "Name of the session. Default: the first line of the prompt",
    read: Values.nonEmpty,
    expected: "a text",
    isKept: false
  })
}
