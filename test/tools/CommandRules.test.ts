import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { CommandRules } from "effect-agent/tools"

const rules: CommandRules.Rules = {
  allow: [["git"], ["npm", "test"], ["npm", "run", "build"], ["ls"], ["echo"], ["cat"], ["./run.sh"]],
  deny: [["rm"], ["git", "push"], ["curl", "-o"]]
}
const decide = (line: string, by = rules) => CommandRules.judge(by, line).decision
const decideAll = (decision: CommandRules.Verdict["decision"], lines: ReadonlyArray<string>, by = rules) => {
  for (const line of lines) assert.strictEqual(decide(line, by), decision, JSON.stringify(line))
}

describe("CommandRules.parse", () => {
  const parse = (line: string) => Result.getOrThrow(CommandRules.parse(line))
  const fault = (line: string) => Result.getOrThrow(Result.flip(CommandRules.parse(line)))

  it("reads words, quotes and operators as the shell does", () => {
    assert.deepStrictEqual(parse("git status"), [["git", "status"]])
    assert.deepStrictEqual(parse(`  a 'b c' "d e" g'h'"i"j ''  `), [["a", "b c", "d e", "ghij", ""]])
    assert.deepStrictEqual(parse(`a '$x \`y\` \\n "z"' "it's (*)"`), [["a", '$x `y` \\n "z"', "it's (*)"]])
    assert.deepStrictEqual(parse("a && b || c; d | e\n\n f;\ng\n"), [
      ["a"],
      ["b"],
      ["c"],
      ["d"],
      ["e"],
      ["f"],
      ["g"]
    ])
    assert.deepStrictEqual(parse("a&&b|c"), [["a"], ["b"], ["c"]])
    assert.deepStrictEqual(parse("a --x=1 if = ./b:c,d+e@f%g"), [["a", "--x=1", "if", "=", "./b:c,d+e@f%g"]])
  })

  it("names the part that it does not read", () => {
    assert.strictEqual(fault("echo $(id)"), '"$"')
    assert.strictEqual(fault("echo hi > file"), '">"')
    assert.strictEqual(fault("echo 'open"), '"\'"')
    assert.strictEqual(fault("A=1 b"), '"A=1"')
    assert.strictEqual(fault("a; for x in b"), '"for"')
    assert.strictEqual(fault("a \u{1f600}"), '"\u{1f600}"')
    assert.strictEqual(fault("a && "), "an empty command")
    assert.strictEqual(fault(""), "an empty command")
  })

  it("reads no line that would take it long", () => {
    const longest = "a ".repeat(4_096)
    assert.strictEqual(parse(longest)[0]?.length, 4_096)
    assert.strictEqual(fault(`${longest}a`), "more than 8192 characters")
    assert.strictEqual(decide(`rm ${longest}`), "ask")
  })

  it("reads a rule of one command", () => {
    const rule = (text: string) => Result.getOrElse(CommandRules.parseRule(text), () => undefined)
    assert.deepStrictEqual(rule(" git log 'a b' "), ["git", "log", "a b"])
    for (const text of ["", "a; b", "a && b", "git *", "npm run test:*", "$X", "time", "A=1 b"])
      assert.isUndefined(rule(text), text)
  })
})

describe("CommandRules.judge", () => {
  it("allows commands that begin with the words of a rule", () => {
    decideAll("allow", [
      "git status",
      "git",
      "'git' \"status\"",
      "git log --oneline -5",
      "npm test",
      "npm test -- --watch",
      "npm run build",
      "./run.sh now",
      "ls -la src && git status",
      "ls | cat; echo 'a && mv -rf /'",
      'echo "done; it\'s fine."',
      "echo 'git $(x) > `y`'"
    ])
  })

  it("asks when no rule covers one of the commands", () => {
    decideAll("ask", [
      "npm install",
      "npm run",
      "npm run build:all",
      "npm 'run build'",
      "make",
      "gitx",
      "./git status",
      "/usr/bin/git status",
      "run.sh",
      "git status && make",
      "make | cat",
      ""
    ])
    decideAll("ask", ["ls", "git status"], {})
  })

  it("F146: denies a command that begins with the words of a rule, in any folder", () => {
    decideAll("deny", [
      "rm -rf /",
      "/bin/rm x",
      "'rm' x",
      "r'm' x",
      "git status && rm x",
      "git status; rm x",
      "git status\nrm x",
      "git status | rm x",
      "git push origin main",
      "echo hi || curl -o x http://x"
    ])
  })

  it("F146: asks about a command that contains the words of a rule that denies", () => {
    decideAll("ask", [
      "git --no-pager push",
      "git -c alias.p=push p",
      "git -C . 'push'",
      "git GIT PUSH",
      "echo git push",
      "cat /bin/rm",
      "ls --rm",
      "echo 'sh -c rm'"
    ])
    // Options have several spellings.
    decideAll("ask", ["curl x", "curl --output x y", "curl -sox y"], { ...rules, allow: [["curl"]] })
    decideAll("allow", ["git log", "git stash pop", "echo format"])
  })

  it("covers everything with the rule without words, but for lines that it cannot read", () => {
    decideAll("allow", ["make", "/x/y z; w"], { allow: [[]] })
    decideAll("ask", ["make > x", "$X"], { allow: [[]] })
    decideAll("deny", ["ls", "make"], { allow: [["ls"]], deny: [[]] })
    decideAll("ask", ["ls > x"], { allow: [["ls"]], deny: [[]] })
  })

  it("F146: asks about each line that it cannot be sure of", () => {
    const lines = [
      "git status $(rm x)",
      "git status `rm x`",
      'echo "$(rm x)"',
      'echo "`rm x`"',
      'echo "a\\"; rm x; \\""',
      "echo $HOME",
      'echo "$HOME"',
      "$X status",
      "git status & rm x",
      "git status &",
      "echo &>/dev/null rm -rf src",
      "git status &> /dev/null",
      "git status 2>&1",
      "git status > ~/.bashrc",
      "git status >\u00a0/dev/null",
      "git\u00a0status",
      "git\u3000status",
      "git\tstatus",
      "echo é",
      "echo 'é'",
      "echo x >> file",
      "cat < /etc/passwd",
      "cat << EOF\nx\nEOF",
      "cat <<< x",
      "(rm x)",
      "{ rm x; }",
      "if true; then rm x; fi",
      "then rm x",
      "time git status",
      "PATH=. git status",
      "PATH+=. git status",
      'LD_PRELOAD="./x so" git status',
      "! git status",
      "git status # comment",
      "git add *.ts",
      "ls a?",
      "ls [a]",
      "ls {a,b}",
      "ls ~",
      "git st\\atus",
      "git status \\\n",
      "git status &&",
      "git status;",
      "&& git status",
      "git status ;; git status",
      "git status | | ls",
      "echo 'open",
      'echo "open',
      "echo 'a\nb'",
      "echo $'a'",
      "git status\r\nrm x",
      "git status\u2028rm x",
      "git\u200b status",
      "git status\u0000",
      "echo \u001b[2K",
      "cat <(rm x)",
      "git status |& rm x",
      "[[ -f x ]] && git status",
      "[ -f x ] && git status",
      "function git() { rm x; }",
      "git () { rm x; }",
      "echo a!b",
      'echo "a!b"'
    ]
    decideAll("ask", lines)
    decideAll("ask", lines, { allow: [[]] })
  })

  it("gives the reason", () => {
    const reason = (line: string) => CommandRules.judge(rules, line).reason
    assert.strictEqual(reason("rm x"), 'a rule denies "rm"')
    assert.strictEqual(reason("git -P push"), 'it may be "git push", which a rule denies')
    assert.strictEqual(reason("echo $(id)"), 'the rules cannot read "$"')
    assert.strictEqual(reason("ls; make all"), 'no rule allows "make all"')
  })
})
