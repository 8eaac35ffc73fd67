/** The guards of sessions, context managers, guardrails and artifacts, each taken out. */
import type { Mutant } from "./Mutant.ts"

export const mutants: ReadonlyArray<Mutant> = [
  {
    fault: "so that a second one fails at once, until the first has closed",
    without: "a lock of a living process is kept",
    file: "src/sessions/WriterLock.ts",
    from: 'if (yield* processLives({ start: "", ...owner })) return yield* held(owner)',
    to: "",
    test: "test/sessions/jsonl.slow.test.ts"
  },
  {
    fault: "at any byte of its last three lines keeps every whole line, and continues on a line of its own",
    without: "a line that was cut ends before the next one",
    file: "src/sessions/internal/JsonlStorage.ts",
    from: 'const start = isCut ? "\\n" : ""',
    to: 'const start = ""',
    test: "test/sessions/damage.slow.test.ts"
  },
  {
    fault: "at any byte of its last three lines keeps every whole line, and continues on a line of its own",
    without: "broken lines are reported",
    file: "src/sessions/internal/Reading.ts",
    from: "      this.report(`no entry: ${read.failure}`)\n",
    to: "",
    test: "test/sessions/damage.slow.test.ts"
  },
  {
    fault: "is the state that the records lead to, also with writes that fail",
    without: "a session is read again after a write that failed",
    file: "src/sessions/internal/OpenSession.ts",
    from: "      this.shared.failures++\n",
    to: "",
    test: "test/sessions/fold.test.ts"
  },
  {
    fault: "what a redaction hook leaves, while the open session has all",
    without: "entries are redacted before they are written",
    file: "src/sessions/internal/OpenSession.ts",
    from: "isWrapper ? entry : this.stored(entry)",
    to: "entry",
    test: "test/sessions/memory.test.ts"
  },
  {
    fault: "of a later version are refused",
    without: "tables of a later version are refused",
    file: "src/sql/SqlVersions.ts",
    from: "if (found > latest)",
    to: "if (false)",
    test: "test/sessions/SqlSessionStore.test.ts"
  },
  {
    fault: "that are questions expire after a restart too",
    without: "a question expires after a restart",
    file: "src/sessions/internal/Journal.ts",
    from: 'return [custom("question", { phase: "asked", ...request })]',
    to: 'const { expiresAt, ...kept } = request; return [custom("question", { phase: "asked", ...kept })]',
    test: "test/behaviour/Requests.test.ts"
  },
  {
    fault: "is due when less than the reserve is free, and keeps the task and the newest turns",
    without: "a compaction is due by its reserve",
    file: "src/context/Compaction.ts",
    from: "const isDue = measure.total >= least && !fits",
    to: "const isDue = !fits",
    test: "test/context/compaction.test.ts"
  },
  {
    fault: "compacts once and asks again, and keeps less where the provider names its limit",
    without: "less is kept after an overflow",
    file: "src/context/Compaction.ts",
    from: "return Math.min(keep, total / 4, limit / 4)",
    to: "return keep",
    test: "test/context/compaction.test.ts"
  },
  {
    fault: "summarizes in parts that the model takes",
    without: "parts that are refused are made smaller",
    file: "src/context/internal/Summary.ts",
    from: "maxInput < smallest",
    to: "true",
    test: "test/context/compaction.test.ts"
  },
  {
    fault: "summarizes a first message too that fills more than half of the window",
    without: "a first message that is too long is summarized",
    file: "src/context/Compaction.ts",
    from: "maxFirst: readable / 2",
    to: "maxFirst: Infinity",
    test: "test/context/compaction.test.ts"
  },
  {
    fault: "compacts once and asks again, and keeps less where the provider names its limit",
    without: "what is kept begins with a turn",
    file: "src/context/Compaction.ts",
    from: "const places = Transcript.turnStarts(messages).filter(",
    to: "const places = [...messages.keys()].filter(",
    test: "test/context/compaction.test.ts"
  },
  {
    fault: "asks without tools, hooks and options of the run, and sends what is summarized",
    without: "no hook is asked about a summary",
    file: "src/context/internal/Summary.ts",
    from: "    Effect.updateService(HookManager, (hooks) => ({ ...hooks, list: () => [] })),\n",
    to: "",
    test: "test/context/compaction.test.ts"
  },
  {
    fault: "leaves the run as it is, with the reason in its event",
    without: "a summary that was cut is none",
    file: "src/context/internal/Summary.ts",
    from: 'return message.stopReason === "stop" ? undefined : fault(`the summary ended early: ${message.stopReason}`)',
    to: "return undefined",
    test: "test/context/compaction.test.ts"
  },
  {
    fault: "that fail, die, are late or return something else stop the run, and are not quoted",
    without: "a failing guard trips",
    file: "src/guardrails/internal/GuardrailCheck.ts",
    from: ": tripped(failureOf(Cause.squash(cause)))",
    to: ": Effect.succeed(undefined)",
    test: "test/guardrails/Guardrail.test.ts"
  },
  {
    fault: "that fail, die, are late or return something else stop the run, and are not quoted",
    without: "a late guard trips",
    file: "src/guardrails/internal/GuardrailCheck.ts",
    from: "if (verdict === late) return tripped(`it took longer than ${Duration.format(timeout)}`)",
    to: "if (verdict === late) return Effect.succeed(undefined)",
    test: "test/guardrails/Guardrail.test.ts"
  },
  {
    fault: "that fail, die, are late or return something else stop the run, and are not quoted",
    without: "something else trips",
    file: "src/guardrails/internal/GuardrailCheck.ts",
    from: 'if (!isVerdict(verdict)) return tripped("it returned no verdict")',
    to: "if (!isVerdict(verdict)) return Effect.succeed(undefined)",
    test: "test/guardrails/Guardrail.test.ts"
  },
  {
    fault: "a word split over deltas is not released, nor a part of it",
    without: "the end of a text waits for what follows",
    file: "src/guardrails/internal/GuardrailCheck.ts",
    from: "Math.max(0, part.passed - this.overlap)",
    to: "part.passed",
    test: "test/guardrails/Guardrail.test.ts"
  },
  {
    fault: "words in place of an answer keep its tools from running",
    without: "nothing of an answer is seen before a guard of whole answers",
    file: "src/guardrails/internal/GuardrailCheck.ts",
    from: "if (this.isWhole && !this.isFinished && !framing.has(event._tag)) return -1",
    to: "",
    test: "test/guardrails/Guardrail.test.ts"
  },
  {
    fault: "arguments that a call ends with are checked, also where other ones streamed",
    without: "arguments as they run are checked",
    file: "src/guardrails/internal/GuardrailCheck.ts",
    from: "if (event.rawArguments !== part.text) this.replace(part, event.rawArguments)",
    to: "",
    test: "test/guardrails/Guardrail.test.ts"
  },
  {
    fault: "words in place of an answer retract what others have seen of it; usage stays, tokens go",
    without: "a replaced answer is retracted",
    file: "src/guardrails/internal/GuardrailCheck.ts",
    from: '...(isPublic ? [{ _tag: "Retracted" } as const] : []),',
    to: "",
    test: "test/guardrails/Guardrail.test.ts"
  },
  {
    fault: "that fail, die, are late or return something else stop the run, and are not quoted",
    without: "failure text is not quoted",
    file: "src/guardrails/internal/GuardrailCheck.ts",
    from: 'return /^[\\w.:/-]{1,60}$/.test(name) ? `it failed with ${name}` : "it failed"',
    to: "return `it failed with ${String(failure)}`",
    test: "test/guardrails/Guardrail.test.ts"
  },
  {
    fault: "keeps files that only the user can read, and no other ones",
    without: "files only the user reads",
    file: "src/artifacts/FileArtifactStore.ts",
    from: '{ flag: "wx", mode: 0o600 }',
    to: '{ flag: "wx" }',
    test: "test/artifacts/ArtifactStore.test.ts"
  },
  {
    fault: "fails for ids that it does not have, whatever they look like",
    without: "ids are no paths",
    file: "src/artifacts/FileArtifactStore.ts",
    from: "/^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$/.test(id)",
    to: "true",
    test: "test/artifacts/ArtifactStore.test.ts"
  },
  {
    fault: "a store that fails or is late costs the middle of the text, and the result admits it",
    without: "a store that is late does not hold the result",
    file: "src/artifacts/LargeResults.ts",
    from: '            Effect.timeout(options?.timeout ?? "10 seconds"),\n',
    to: "",
    test: "test/artifacts/LargeResults.test.ts"
  },
  {
    fault: "what is small, and what read_artifact returns, stays; images and details stay",
    without: "what read_artifact returns is not cut again",
    file: "src/artifacts/LargeResults.ts",
    from: " || except.has(call.toolName.trim())",
    to: "",
    test: "test/artifacts/LargeResults.test.ts"
  },
  {
    fault: "what is small, and what read_artifact returns, stays; images and details stay",
    without: "an artifact has the trust of its result",
    file: "src/artifacts/LargeResults.ts",
    from: "  ...(trust === undefined ? {} : { trust })\n",
    to: "",
    test: "test/artifacts/LargeResults.test.ts"
  },
  {
    fault: "a table of a later version is refused",
    without: "a table of a later version is refused",
    file: "src/artifacts/SqlArtifactStore.ts",
    from: "if (found > latest)",
    to: "if (false)",
    test: "test/artifacts/SqlTables.slow.test.ts"
  },
  {
    fault: "keeps large texts, and replaces them",
    without: "the rows of a longer text go",
    file: "src/artifacts/SqlArtifactStore.ts",
    from: "sql`DELETE FROM ${sql(table)} WHERE id = ${id} AND part >= ${rows.length}`",
    to: "Effect.void",
    test: "test/artifacts/SqlArtifactStore.slow.test.ts"
  },
  {
    fault: "asks without tools, hooks and options of the run",
    without: "the first message of the user is summarized once",
    file: "src/context/Compaction.ts",
    from: ".filter((_, index) => from + index !== firstUser)",
    to: "",
    test: "test/context/compaction.test.ts"
  },
  {
    fault: "files of sessions are for their user alone",
    without: "the file of a session is for its user alone",
    file: "src/sessions/internal/JsonlStorage.ts",
    from: 'flag: "ax", mode: 0o600',
    to: 'flag: "ax"',
    test: "test/sessions/jsonl.slow.test.ts"
  },
  {
    fault: "no secret of a run with tools, an agent inside, a person and queues",
    without: "entries of agents inside are redacted",
    file: "src/sessions/internal/OpenSession.ts",
    from: "lines.filter(isEntry).map((entry) => Journal.ofChild(toolCallId, this.shared.stored(entry)))",
    to: "lines.filter(isEntry).map((entry) => Journal.ofChild(toolCallId, entry))",
    test: "test/sessions/memory.test.ts"
  },
  {
    fault: "keeps what the function leaves under the id, and nothing where it fails",
    without: "an artifact is redacted before it is stored",
    file: "src/artifacts/ArtifactStore.ts",
    from: "...redact(artifact), id: artifact.id",
    to: "...artifact",
    test: "test/artifacts/ArtifactStore.test.ts"
  },
  {
    fault: "keeps no secret of events and of prompts that wait",
    without: "the prompt of a run that waits is redacted",
    file: "src/runs/internal/LogLine.ts",
    from: "line.created, change(line.request)",
    to: "line.created, line.request",
    test: "test/server/RunLogStore.test.ts"
  },
  {
    fault: "leaves the secret to those who watch the run",
    without: "an event is redacted before it is stored",
    file: "src/runs/internal/LogLine.ts",
    from: "JSON.stringify(change(line.event))",
    to: "JSON.stringify(line.event)",
    test: "test/server/RunLogStore.test.ts"
  }
]
