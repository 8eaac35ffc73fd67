/**
 * The settings of servers, of workers, and of the commands that reach a server. The file of a project has none of them until the user
 * trusts it: they open the machine to others, and keep or remove the records of a server.
 */
import type * as Command from "effect/cli/Command"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Struct from "effect/Struct"
import * as Setting from "./Setting.ts"
import * as Values from "./Values.ts"

const rules = { widens: () => true }

const port = (name: string, description: string) =>
  Setting.number({
    name,
    metavar: "N",
    description,
    isFine: (value) => Number.isInteger(value) && value >= 0 && value <= 65_535,
    expected: "a port from 0 to 65535",
    rules
  })

const time = (name: string, description: string, least = Duration.zero) =>
  Setting.text({
    name,
    metavar: "TIME",
    description,
    read: (text) => Option.filter(Values.duration(text), Duration.isGreaterThanOrEqualTo(least)),
    expected: Duration.isZero(least)
      ? "a time such as 90s, 5m or 30d"
      : `a time from ${Duration.toSeconds(least)}s on, such as 30s`,
    rules
  })

const count = (name: string, metavar: string, description: string) =>
  Setting.number({ name, metavar, description, isFine: Values.isCount, expected: "a number above 0", rules })

const list = (
  name: string,
  metavar: string,
  description: string,
  expected: string,
  read: (text: string) => Option.Option<string>
) =>
  Setting.list({
    name,
    metavar,
    description: `${description} (may be repeated)`,
    read: (texts) => Option.all(texts.map(read)),
    expected,
    rules
  })

export const settings = {
  port: port("port", "The port of serve; 0 picks one. Default: 4111"),
  host: Setting.text({
    name: "host",
    metavar: "ADDRESS",
    description: "The address at which serve listens. Default: 127.0.0.1",
    read: Values.nonEmpty,
    expected: "an address",
    rules
  }),
  allowHost: list(
    "allow-host",
    "NAME",
    "A name that clients may call the server by",
    "a host such as agent.example",
    Values.hostName
  ),
  allowOrigin: list(
    "allow-origin",
    "ORIGIN",
    "An origin whose pages may use the server",
    "an origin such as https://chat.example",
    Values.origin
  ),
  allowHeader: list(
    "allow-header",
    "NAME",
    "A header that pages of another origin may send, such as traceparent",
    "the name of a header",
    Values.headerName
  ),
  exposeHeader: list(
    "expose-header",
    "NAME",
    "A header of responses that pages of another origin may read",
    "the name of a header",
    Values.headerName
  ),
  tokenFile: Setting.text({
    name: "token-file",
    metavar: "FILE",
    description:
      "The file with the tokens, one on each line, read again when it changes. A client uses the first. Default: $EFFECT_AGENT_TOKEN, else a new one",
    read: Values.nonEmpty,
    expected: "a file",
    rules
  }),
  rate: Setting.text({
    name: "rate",
    metavar: "N[/TIME]",
    description:
      "The most requests of a token in a time, such as 600 or 60/10s. Default: no limit, and 1m as the time",
    read: Values.rate,
    expected: "a number of requests such as 600 or 60/10s",
    rules
  }),
  grace: time("grace", "The time that runs get to end at SIGTERM. Default: 10s"),
  keepAlive: time(
    "keep-alive",
    "The time that a connection may be idle between requests. Give more than a proxy or balancer before the server has. Default: 75s"
  ),
  headTime: time("head-time", "The time in which the head of a request has to come. Default: 30s"),
  bodyTime: time("body-time", "The time in which the body of a request has to come. Default: 1m"),
  maxBodies: count(
    "max-bodies",
    "MIB",
    "The most MiB of all bodies of requests that are read at one time. Default: 256"
  ),
  maxConnections: count("max-connections", "N", "The most connections at one time. Default: 10000"),
  proxyModel: list(
    "proxy-model",
    "ID",
    "A model that clients may use by proxy. Default: that of the server",
    "a model",
    Values.nonEmpty
  ),
  sessionModel: list(
    "session-model",
    "MODEL",
    "A model that sessions may name, as PROVIDER/ID or PROVIDER/*. Default: those of the providers of --model and --fallback-model",
    "a model",
    Values.nonEmpty
  ),
  durable: Setting.toggle({
    name: "durable",
    description:
      "Let runs survive the process: they continue after a restart. Needs a database. Default: a file of SQLite in the home of the program",
    rules
  }),
  lease: time(
    "lease",
    "How long a worker may be silent before the others take over its sessions. Default: 15s",
    Duration.seconds(5)
  ),
  retain: time(
    "retain",
    "Remove the runs that ended longer ago than this, and the sessions without a newer entry, such as 30d. Default: keep all"
  ),
  unknown: Setting.choice({
    name: "unknown",
    words: ["model", "ask"],
    description:
      "Who decides about a tool call of a process that ended during the call, since its outcome is unknown: the model reads that, or the run asks a person whether to run it again (ask). Default: model",
    rules
  }),
  clusterHost: Setting.text({
    name: "cluster-host",
    metavar: "ADDRESS",
    description:
      "The address at which the other processes of a database reach this one, in a private network. Default: 127.0.0.1",
    read: Values.nonEmpty,
    expected: "an address",
    rules
  }),
  clusterPort: port(
    "cluster-port",
    "The port for the other processes. Default: the first free one from 4112 on"
  ),
  healthPort: port(
    "health-port",
    "The port of GET /health of a worker, at its --cluster-host. Default: none"
  ),
  url: Setting.text({
    name: "url",
    metavar: "URL",
    description:
      "The server at which a prompt runs, with its own models, tools and sessions. Default: none, and for runs http://127.0.0.1:4111",
    read: Values.address,
    expected: "an address such as http://127.0.0.1:4111",
    // The token goes to this address.
    rules
  })
}

/** The flags of all these settings. */
export const flags = Struct.map(settings, Setting.toFlag)

/** The settings of a command that has none. */
export const absent = Struct.map(settings, Setting.toAbsent)

/** The parsed flags. */
export type Flags = Command.Command.Config.Infer<typeof flags>

/** Picks the value of each setting from the flags and the other places. */
export const pick = (flags: Flags, sources: Setting.Sources) =>
  Effect.all(Struct.map(Struct.pick(flags, Struct.keys(settings)), Setting.toPick(sources)))

/** The flags of `serve` that mean nothing without `--durable`. */
export const ofDurable = ["lease", "retain", "unknown", "clusterHost", "clusterPort"] as const
