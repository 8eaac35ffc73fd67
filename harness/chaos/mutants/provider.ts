/**
 * The guards of what is between us and a provider: connections, statuses, streams and their ends.
 */
import type { Mutant } from "./Mutant.ts"

const network = "src/http/HttpConnection.ts"
const transport = "src/providers/Transport.ts"
const plain = "src/providers/internal/connection.ts"
const events = "src/providers/internal/reading.ts"
const failure = "src/http/VendorFailure.ts"
const vendorErrors = "src/http/VendorErrors.ts"
const answer = "src/providers/internal/answer.ts"
const sse = "src/providers/Framing.ts"
const chat = "src/providers/internal/openAiChat/protocol.ts"
const chunks = "src/providers/internal/openAiChat/protocol.ts"
const retryAfter = "src/http/VendorFailure.ts"
const silence = "src/providers/internal/connection.ts"
const errors = "src/ProviderError.ts"
const retry = "src/resilience/Retry.ts"

const connectTest = "test/faults/connect.test.ts"
const statusTest = "test/faults/status.test.ts"
const retryAfterTest = "test/faults/retryAfter.test.ts"
const framingTest = "test/faults/framing.slow.test.ts"
const encodingTest = "test/faults/encoding.test.ts"
const sizeTest = "test/faults/size.slow.test.ts"
const stallsTest = "test/faults/stalls.test.ts"
const truncationTest = "test/faults/truncation.test.ts"
const garbageTest = "test/faults/garbage.slow.test.ts"
const midstreamTest = "test/faults/midstream.test.ts"

const connecting: ReadonlyArray<Mutant> = [
  {
    fault: "F001",
    without: "a refused connection has a name of its own",
    file: network,
    from: "[/^(?:ECONNREFUSED|EHOSTUNREACH",
    to: "[/^(?:EHOSTUNREACH",
    test: connectTest
  },
  {
    fault: "F001",
    without: "a failure says where the connection was to go",
    file: network,
    from: "`${message.includes(code) ? message : `${code}: ${message}`} (${host})`",
    to: '"The connection failed"',
    test: connectTest
  },
  {
    fault: "F002",
    without: "a name that nobody has is not looked up again",
    file: errors,
    from: 'return this.code !== "ENOTFOUND"',
    to: "return true",
    test: "test/faults/dns.test.ts"
  },
  {
    fault: "F002",
    without: "a name that could not be looked up is looked up again",
    file: errors,
    from: 'return this.code !== "ENOTFOUND"',
    to: "return false",
    test: "test/faults/dns.test.ts"
  },
  {
    fault: "F003",
    without: "a certificate that is refused is a failure of TLS, which is not tried again",
    file: network,
    from: 'HOSTNAME_MISMATCH)/,\n    "tls"',
    to: 'HOSTNAME_MISMATCH)/,\n    "reset"',
    test: "test/faults/tls.test.ts"
  },
  {
    fault: "F004",
    without: "a reset is tried again",
    file: errors,
    from: 'return this.kind === "refused" || this.kind === "reset"',
    to: 'return this.kind === "refused"',
    test: connectTest
  },
  {
    fault: "F005",
    without: "tries are counted",
    file: retry,
    from: "Schedule.upTo({ times: 2 })",
    to: "Schedule.upTo({ times: 9 })",
    test: connectTest
  },
  {
    fault: "F006",
    without: "half a head is a connection that broke, which is tried again",
    file: network,
    from: '?.[1] ?? "reset"',
    to: '?.[1] ?? "badHttp"',
    test: connectTest
  },
  {
    fault: "F008",
    without: "a retry is announced",
    file: retry,
    from: "Stream.concat(announce({ attempt, delay, error }, spoke), Stream.unwrap(next))",
    to: "Stream.unwrap(next)",
    test: connectTest
  }
]

const statuses: ReadonlyArray<Mutant> = [
  {
    fault: "F009",
    without: "a bad request is not tried again",
    file: failure,
    from: "return new Reasons.InvalidRequest(refusing)",
    to: "return new Reasons.ServerError(waiting)",
    test: statusTest
  },
  {
    fault: "F009",
    without: "the id of the request is kept",
    file: failure,
    from: '"x-request-id",\n  "request-id",',
    to: '"request-id",',
    test: statusTest
  },
  {
    fault: "F010",
    without: "secrets are cut out of what is said",
    file: "src/providers/internal/secrets.ts",
    from: 'return (text) => (text === "" ? text : cutOut(text, (secrets ??= all())))',
    to: "return (text) => text",
    test: statusTest
  },
  {
    fault: "F010",
    without: "a key in an address stays out of spans",
    file: plain,
    from: "redacting(tracer, redact)",
    to: "tracer",
    test: statusTest
  },
  {
    fault: "F011",
    without: "the model that is missing is named",
    file: failure,
    from: "facts.detail.includes(model) ? facts",
    to: "facts.detail.length > 0 ? facts",
    test: statusTest
  },
  {
    fault: "F013",
    without: "a timeout or a conflict passes like a failure of the server",
    file: vendorErrors,
    from: '[408, "ServerError"],\n  [409, "ServerError"],',
    to: "",
    test: statusTest
  },
  {
    fault: "F013",
    without: "waits are not all alike",
    file: retry,
    from: "  Schedule.jittered,\n",
    to: "",
    test: statusTest
  },
  {
    fault: "F014",
    without: "a server that stays down is given up",
    file: retry,
    from: "Schedule.upTo({ times: 2 })",
    to: "Schedule.upTo({ times: 5 })",
    test: statusTest
  },
  {
    fault: "F015",
    without: "a second is a second",
    file: retryAfter,
    from: "Number(trimmed) * unit * 1000",
    to: "Number(trimmed) * unit",
    test: retryAfterTest
  },
  {
    fault: "F016",
    without: "the finer header is read",
    file: retryAfter,
    from: 'positive(seconds(all["retry-after-ms"], 0.001)) ??',
    to: "",
    test: retryAfterTest
  },
  {
    fault: "F018",
    without: "a wait may be too long",
    file: "src/internal/attempts.ts",
    from: "if (!isRetryable || Duration.isGreaterThan(retryAfter, this.maxRetryAfter)) return undefined",
    to: "if (!isRetryable) return undefined",
    test: retryAfterTest
  },
  {
    fault: "F019",
    without: "a wait is a number in the form of one",
    file: retryAfter,
    from: "return /^\\d+(?:\\.\\d+)?(?:e\\+?\\d+)?$/i.test(trimmed) ?",
    to: 'return trimmed !== "" ?',
    test: retryAfterTest
  },
  {
    fault: "F023",
    without: "of a body only the start is kept",
    file: "src/http/VendorText.ts",
    from: "const maxBody = 4096",
    to: "const maxBody = 409_600",
    test: statusTest
  },
  {
    fault: "F024",
    without: "a page is no answer",
    file: "src/providers/internal/connection.ts",
    from: '!(headers["content-type"] ?? "").includes("html") && isDecoded',
    to: "isDecoded",
    test: statusTest
  },
  {
    fault: "F025",
    without: "an event may tell of a failure",
    file: failure,
    from: "reportsFailure(event) ? ofEvent(event, data, model) : undefined",
    to: "undefined",
    test: statusTest
  },
  {
    fault: "F027",
    without: "an answer of nothing is asked for again",
    file: errors,
    from: 'return this.kind === "empty"',
    to: "return false",
    test: statusTest
  },
  {
    fault: "F029",
    without: "a redirect is not followed",
    file: plain,
    from: 'redirect: "manual" as const',
    to: 'redirect: "follow" as const',
    test: statusTest
  }
]

const framing: ReadonlyArray<Mutant> = [
  {
    fault: "F031",
    without: "lines end in CRLF too",
    file: sse,
    from: 'return own.replace(/\\r\\n?/g, "\\n")',
    to: "return own",
    test: framingTest
  },
  {
    fault: "F034",
    without: "a byte order mark is no part of the first line",
    file: sse,
    from: "text.charCodeAt(0) === 0xfeff ? text.slice(1) : text",
    to: "text",
    test: framingTest
  },
  {
    fault: "F035",
    without: "the space after a colon may be missing",
    file: sse,
    from: "text.charCodeAt(colon) === 0x20 ? colon + 1 : colon",
    to: "colon + 1",
    test: framingTest
  },
  {
    fault: "F035",
    without: "comments are no events",
    file: sse,
    from: "} else if (first !== 0x3a) {",
    to: '} else if (first === 0x3a) {\n      out.push({ event: "", data: text.slice(start + 1, end) })\n    } else {',
    test: framingTest
  },
  {
    fault: "F038",
    without: "a character may be cut by the network",
    file: sse,
    from: "this.utf8.decode(bytes, { stream: true })",
    to: "this.utf8.decode(bytes)",
    test: framingTest
  },
  {
    fault: "F039",
    without: "an event may be too large",
    file: sse,
    from: "const maxEvent = 32 * 1024 * 1024",
    to: "const maxEvent = Infinity",
    test: sizeTest
  },
  {
    fault: "F041",
    without: "brotli is read",
    file: "src/providers/internal/connection.ts",
    from: ',\n  ["br", "brotli"]',
    to: "",
    test: encodingTest
  },
  {
    fault: "F041",
    without: "what nobody here can decode is no answer",
    file: "src/providers/internal/connection.ts",
    from: '.includes("html") && isDecoded',
    to: '.includes("html")',
    test: encodingTest
  },
  {
    fault: "F041",
    without: "decoded bytes are counted",
    file: answer,
    from: "if (this.bytes <= maxBytes) return undefined",
    to: "if (1 < 2) return undefined",
    test: "test/faults/encodingBomb.slow.test.ts"
  },
  {
    fault: "F042",
    without: "events that nobody knows are left out",
    file: "src/providers/internal/anthropic/wire.ts",
    from: 'return typeof type === "string" ? other : undefined',
    to: "return undefined",
    test: framingTest
  },
  {
    fault: "F044",
    without: "the label of a stream does not matter",
    file: "src/providers/internal/connection.ts",
    from: '!(headers["content-type"] ?? "").includes("html")',
    to: '(headers["content-type"] ?? "").includes("event-stream")',
    test: framingTest
  }
]

const stalls: ReadonlyArray<Mutant> = [
  {
    fault: "F047",
    without: "the wait for a response ends",
    file: silence,
    from: 'firstByte ?? "60 seconds"',
    to: "firstByte ?? Duration.infinity",
    test: stallsTest
  },
  {
    fault: "F048",
    without: "silence in an answer ends it",
    file: silence,
    from: 'idle ?? "120 seconds"',
    to: "idle ?? Duration.infinity",
    test: stallsTest
  },
  {
    fault: "F051",
    without: "an answer is over with its last event",
    file: chat,
    from: 'sentinel: "[DONE]",\n',
    to: "",
    test: stallsTest
  },
  {
    fault: "F051",
    without: "a finish reason of Google's may be the last of it",
    file: "src/providers/internal/gemini/protocol.ts",
    from: "return isLast\n",
    to: "return false\n",
    test: stallsTest
  },
  {
    fault: "F052",
    without: "each piece of content ends the silence",
    file: silence,
    from: "this.until = now(this.clock) + this.limits.idle",
    to: "this.until = (this.since ??= now(this.clock)) + this.limits.idle",
    test: stallsTest
  }
]

const ends: ReadonlyArray<Mutant> = [
  {
    fault: "F053",
    without: "an answer without proof of its end was cut",
    file: chat,
    from: "return (sawEnd || isLenient) && calls.every(",
    to: "return calls.every(",
    test: truncationTest
  },
  {
    fault: "F054",
    without: "a connection that breaks cuts the answer",
    file: transport,
    from: 'reason._tag === "Transport" ? new StreamTruncated({ detail: reason.detail }) : reason',
    to: "reason",
    test: truncationTest
  },
  {
    fault: "F056",
    without: "half a call is no answer",
    file: "src/providers/internal/openAiResponses/protocol.ts",
    from: 'return new StreamTruncated({ detail: "The answer stopped before its end" })',
    to: 'return void out.push({ _tag: "Finish", stopReason: "toolUse" })',
    test: truncationTest
  },
  {
    fault: "F058",
    without: "what a token limit cut does not run",
    file: "src/internal/toolCall.ts",
    from: "if (cut !== undefined) return cut",
    to: "",
    test: truncationTest
  },
  {
    fault: "F060",
    without: "data that is no JSON is a failure",
    file: events,
    from: 'if (json === undefined) return inText(data, "") ?? badJson(data)',
    to: "if (json === undefined) return {}",
    test: garbageTest
  },
  {
    fault: "F060",
    without: "little of such data is shown",
    file: events,
    from: "${VendorText.cut(Json.problem(data), 200)}: ${VendorText.cut(data, 200)}`",
    to: "${VendorText.cut(Json.problem(data), 200)}: ${data}`",
    test: garbageTest
  },
  {
    fault: "F062",
    without: "content of a wrong type is a failure, as it would be lost",
    file: chunks,
    from: "own !== undefined && !isReadable(own)",
    to: "false",
    test: garbageTest
  },
  {
    fault: "F062",
    without: "every member of an event is looked at before it is used",
    file: "src/internal/json.ts",
    from: 'typeof json === "string" && json !== "" ? json : undefined',
    to: 'json === "" ? undefined : json',
    test: garbageTest
  },
  {
    fault: "F066",
    without: "an error in the middle is no end",
    file: answer,
    from: "if (isReason(isLast)) this.refuse(data, this.redacted(data, isLast))",
    to: 'if (isReason(isLast)) this.outcome = "complete"',
    test: midstreamTest
  },
  {
    fault: "F067",
    without: "a start alone says nothing yet",
    file: "src/resilience/internal/OrElse.ts",
    from: "this.held = [event]\n        return []",
    to: "this.spoke = true\n        return [event]",
    test: midstreamTest
  },
  {
    fault: "F070",
    without: "nothing is read behind the end",
    file: answer,
    from: "      if (this.over) break\n",
    to: "",
    test: midstreamTest
  },
  {
    fault: "F071",
    without: "calls are told apart by their place, whatever their ids",
    file: "src/providers/internal/openAiChat/parts.ts",
    from: "const known = index === undefined ? undefined : this.byIndex.get(index)",
    to: "const known = [...this.byIndex.values()].find((open) => open.id === id) ?? this.byIndex.get(index ?? 0)",
    test: midstreamTest
  }
]

export const mutants: ReadonlyArray<Mutant> = [...connecting, ...statuses, ...framing, ...stalls, ...ends]
