import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { CommandLine, CommandRules } from "effect-agent/tools"

const rules: CommandRules.Rules = {
  allow: [
    "git *",
    "npm test",
    "npm run *",
    "ls *",
    "cat *",
    "echo *",
    "find *",
    "sed *",
    "grep *",
    "env *",
    "node *",
    "tar *",
    "sort *"
  ],
  deny: ["rm *", "git push *", "curl *"],
  ask: ["git commit *"]
}
const decide = (line: string, by = rules) => CommandRules.judge(by, line).decision
const decideAll = (decision: CommandRules.Verdict["decision"], lines: ReadonlyArray<string>) => {
  for (const line of lines) assert.strictEqual(decide(line), decision, line)
}

describe("CommandLine", () => {
  it("reads no line that would take it long", () => {
    const longest = "a ".repeat(4_096)
    assert.strictEqual(Result.getOrThrow(CommandLine.parse(longest))[0]?.length, 4_096)
    const fault = Result.getOrThrow(Result.flip(CommandLine.parse(`${longest}a`)))
    assert.strictEqual(fault, "more than 8192 characters")
    assert.strictEqual(decide(`rm ${longest}`), "ask")
  })

  it("reads argument lists as the shell does", () => {
    const parse = (line: string) => Result.getOrThrow(CommandLine.parse(line))
    assert.deepStrictEqual(parse("git status"), [["git", "status"]])
    assert.deepStrictEqual(parse("a 'b c' \"d e\" f\\ g h'i'\"j\"k ''"), [
      ["a", "b c", "d e", "f g", "hijk", ""]
    ])
    assert.deepStrictEqual(parse('echo "a\\"b\\\\c\\$d" \'$x `y` \\\''), [["echo", 'a"b\\c$d', "$x `y` \\"]])
    assert.deepStrictEqual(parse("a && b || c; d | e\nf;"), [["a"], ["b"], ["c"], ["d"], ["e"], ["f"]])
    assert.deepStrictEqual(parse("a 2>&1 | b > /dev/null 2>/dev/null"), [["a"], ["b"]])
    assert.deepStrictEqual(parse("a \\\n  b"), [["a", "b"]])
    assert.deepStrictEqual(parse("r\\m -rf 'x'"), [["rm", "-rf", "x"]])
    assert.deepStrictEqual(parse("  \n "), [])
  })

  it("says what it does not understand", () => {
    const fault = (line: string) => Result.getOrThrow(Result.flip(CommandLine.parse(line)))
    assert.strictEqual(fault("echo $(id)"), "an expansion")
    assert.strictEqual(fault("echo hi > file"), "a redirection")
    assert.strictEqual(fault("A=1 b"), "an assignment")
    assert.strictEqual(fault("sleep 1 &"), "a command in the background")
    assert.strictEqual(fault("for x in a; do b; done"), "the keyword for")
  })
})

describe("CommandRules", () => {
  it("allows what a rule allows", () => {
    decideAll("allow", [
      "git status",
      "git",
      "git log --oneline -5",
      "npm test",
      "npm run build",
      "ls -la src && git status",
      "ls | grep foo; echo 'a && rm -rf /'",
      "git log -p | cat",
      'echo "done; it\'s fine!"',
      "find . -name '*.ts'",
      "sed -n '1,5p' file",
      "sed 's/a/b/g' file",
      "npm test 2>&1"
    ])
  })

  it("asks when no rule is for it", () => {
    decideAll("ask", [
      "npm install",
      "npm test --watch",
      "make",
      "./git status",
      "/usr/bin/git status",
      "git status && make",
      ""
    ])
  })

  it("denies, whatever else is allowed", () => {
    decideAll("deny", [
      "rm -rf /",
      "/bin/rm x",
      "r\\m x",
      "'rm' x",
      "git status && rm x",
      "git status; rm x",
      "git status\nrm x",
      "git status | rm x",
      "git push origin main",
      "echo hi || curl http://x"
    ])
  })

  it("asks when a rule says so", () => {
    decideAll("ask", ["git commit -m x", "git status && git commit -m x"])
  })

  it("F146: asks about what it cannot be sure of", () => {
    decideAll("ask", [
      "git status $(rm x)",
      "git status `rm x`",
      'echo "$(rm x)"',
      "echo $HOME",
      "$X status",
      "git status & rm x",
      // To sh this is a command in the background, and then one that writes to /dev/null.
      "echo &>/dev/null rm -rf src",
      "git status &> /dev/null",
      "git status > ~/.bashrc",
      "echo x >> file",
      "cat < /etc/passwd",
      "cat << EOF\nx\nEOF",
      "(rm x)",
      "{ rm x; }",
      "if true; then rm x; fi",
      "PATH=. git status",
      'LD_PRELOAD="./x so" git status',
      "! git status",
      "git status # comment",
      "git add *.ts",
      "ls {a,b}",
      "ls ~",
      "git status &&",
      "&& git status",
      "git status ;; git status",
      "echo 'open",
      'echo "open',
      "echo $'a'",
      "git status\r\nrm x",
      "git status\u2028rm x",
      "git\u200b status",
      "echo \u001b[2K",
      "cat <(rm x)",
      "git status |& rm x",
      "[[ -f x ]] && git status",
      "function git() { rm x; }",
      "git () { rm x; }"
    ])
  })

  it("F146: lets no program run another by a star", () => {
    decideAll("ask", [
      "env rm x",
      "env git status",
      "find . -exec rm {} +",
      "find . -exec rm '{}' ';'",
      "find . -delete",
      "find . -fprintf out x",
      "sed -i 's/a/b/' file",
      "sed 's/a/b/e' file",
      "sed 'w file' x",
      "sed '1e rm x' x",
      "sed -e '1e rm x' x",
      "sed -n '1e rm x' x",
      "sed p -i file",
      "git -c core.pager=rm log",
      "git -c alias.x='!rm y' x",
      "git fetch --upload-pack=rm x",
      "git grep -Orm x",
      "git config alias.x '!rm'",
      "node -e 'x'",
      "node --eval=x",
      "node -pe x",
      "tar xf a.tar --to-command=rm",
      "tar -I rm -xf a",
      "sort -o file x",
      "sort --compress-program=rm x",
      "sort --comp=rm x",
      "tar xf a --to-com=rm",
      "git fetch --upload-p=rm x",
      "git -C /elsewhere status",
      "git rebase -x rm main"
    ])
  })

  it("allows such arguments when a rule spells them out", () => {
    const by = {
      allow: [
        "env CI=1 npm test",
        "find . -name * -delete",
        "node -e *",
        "npx vitest *",
        "git -c color.ui=never log *"
      ]
    }
    assert.strictEqual(decide("env CI=1 npm test", by), "allow")
    assert.strictEqual(decide("env CI=1 npm run", by), "ask")
    assert.strictEqual(decide("find . -name '*.tmp' -delete", by), "allow")
    assert.strictEqual(decide("find . -name x -exec rm", by), "ask")
    assert.strictEqual(decide("node -e 'x'", by), "allow")
    assert.strictEqual(decide("npx vitest run", by), "allow")
    assert.strictEqual(decide("npx evil run", by), "ask")
    assert.strictEqual(decide("npx -p evil vitest", by), "ask")
    assert.strictEqual(decide("git -c core.pager=rm log", by), "ask")
  })

  it("takes stars for one argument, for the rest, or in a word", () => {
    const by = { allow: ["npm run test:*", "git * --stat", "ls"] }
    assert.strictEqual(decide("npm run test:unit", by), "allow")
    assert.strictEqual(decide("npm run build", by), "ask")
    assert.strictEqual(decide("git diff --stat", by), "allow")
    assert.strictEqual(decide("git diff main --stat", by), "ask")
    assert.strictEqual(decide("ls", by), "allow")
    assert.strictEqual(decide("ls src", by), "ask")
  })

  it("does not allow a program by a star, and denies all by one", () => {
    assert.strictEqual(decide("anything", { allow: ["*", "* *"] }), "ask")
    assert.strictEqual(decide("ls", { allow: ["ls *"], deny: ["*"] }), "deny")
  })

  it("takes a rule without a star for exactly these arguments", () => {
    assert.strictEqual(decide("/bin/rm", { deny: ["rm"] }), "deny")
    assert.strictEqual(decide("rm x", { allow: ["rm *"], deny: ["rm"] }), "allow")
    assert.strictEqual(decide("/bin/rm x", { allow: ["/bin/rm *"], ask: ["rm *"] }), "ask")
    assert.strictEqual(decide("/bin/rm x", { allow: ["/bin/rm *"] }), "allow")
  })

  it("asks when a rule of care cannot be read", () => {
    assert.strictEqual(decide("ls", { allow: ["ls"], deny: ["rm $X"] }), "ask")
    assert.strictEqual(decide("ls", { allow: ["ls", "rm $("] }), "allow")
  })

  it("says why", () => {
    assert.strictEqual(CommandRules.judge(rules, "rm x").reason, 'the rule "rm *" denies it')
    assert.include(CommandRules.judge(rules, "echo $(id)").reason, "an expansion")
    assert.include(CommandRules.judge(rules, "find . -delete").reason, "can run other programs")
  })
})
