/** The settings of servers and workers: whether runs survive the process, and how long their events are kept. */
import type * as Command from "effect/cli/Command"
import * as Duration from "effect/Duration"
import * as Option from "effect/Option"
import * as Setting from "./Setting.ts"
import * as Values from "./Values.ts"

const isLongEnough = Duration.isGreaterThanOrEqualTo(Duration.seconds(5))

export const settings = {
  durable: Setting.toggle({
    name: "durable",
    description:
      "Let runs survive the process: they continue after a restart. Needs a database. Default: a file of SQLite in the home of the program"
  }),
  lease: Setting.text({
    name: "lease",
    metavar: "TIME",
    description: "How long a worker may be silent before the others take over its sessions. Default: 15s",
    read: (text) => Option.filter(Values.duration(text), isLongEnough),
    expected: "a time from 5s on, such as 30s"
  }),
  retain: Setting.text({
    name: "retain",
    metavar: "TIME",
    description:
      "Remove the runs that ended longer ago than this, and the sessions without a newer entry, such as 30d. Default: keep all",
    read: Values.duration,
    expected: "a time such as 12h or 30d",
    // A project must not remove the records of a server.
    rules: { widens: () => true }
  }),
  unknown: Setting.choice({
    name: "unknown",
    words: ["model", "ask"],
    description:
      "Who decides about a tool call of a process that ended during the call, since its outcome is unknown: the model reads that, or the run asks a person whether to run it again (ask). Default: model"
  })
}

/** The flags of all these settings. */
export const flags = {
  durable: settings.durable.parameter,
  lease: settings.lease.parameter,
  retain: settings.retain.parameter,
  unknown: settings.unknown.parameter
}

/** The parsed flags. */
export type Flags = Command.Command.Config.Infer<typeof flags>
