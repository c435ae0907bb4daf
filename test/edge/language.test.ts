import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { test } from 'node:test'

/** Checks every comment and Markdown file against the language rules of CONTRIBUTING that a machine can check. */

const ROOT = new URL('../../', import.meta.url)
const FILES = '{*.md,{edge,sql,tasks,workers,test,deploy}/**/*.{ts,js,sql,css,html,md}}'
const BANNED_OPENINGS =
  /^(What|Whatever|Whether|Who|Whoever|Whose|How|Of|Those that|Those who|That|Which)\b(?!.*\?$)/
const BANNED_WORDS =
  /\b(mend(s|ed|ing)?|at once|anew|amid|for ever|as long as|switch(es|ed)? off|beside|(is|are|was|were|be) (told|had)|known of|put back|sent? again|told|nobody)\b/i
/** Names that the glossary replaced. */
const BANNED_NAMES = /feelPulse|housekeep|spareJobs|repairJobs|sendAgain|switched_?off|settledUntil/i
const TOKEN_PATTERNS: Readonly<Record<string, RegExp>> = {
  ts: /'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`|\/\*[\s\S]*?\*\/|(?:\/\/[^\n]*\n[ \t]*)*\/\/[^\n]*/g,
  sql: /(?:--[^\n]*\n[ \t]*)*--[^\n]*|'(?:''|[^'])*'/g,
  css: /\/\*[\s\S]*?\*\//g,
  html: /<!--[\s\S]*?-->/g,
}

/** Comments of a source file; paragraphs, list items and table cells of a Markdown file. */
function extractPassages(file: string, text: string): string[] {
  if (file.endsWith('.md'))
    return text.replace(/```[\s\S]*?```|<[^>]*>|^#.*/gm, '').split(/\n\n|\n *[-*|] |\n *\d+\. |\|/)
  const tokens = text.match(TOKEN_PATTERNS[file.split('.').pop()!.replace('js', 'ts')]!) ?? []
  return tokens.filter((token) => !/^['"`]/.test(token))
}

function splitSentences(passage: string): string[] {
  const marks = /^\s*(\/\*\*?|\*\/|\*|\/\/|--|<!--)( |$)|\*\/|-->/gm
  const text = passage.replace(marks, '').replace(/\s+/g, ' ')
  return text.trim().split(/(?<=[.!?:])\s+(?=[A-Z`(])|(?:^|\s)- |\s(?=@\w)/)
}

function findFault(sentence: string): string | null {
  const word = BANNED_OPENINGS.exec(sentence) ?? BANNED_WORDS.exec(sentence.replace(/`[^`]*`/g, ''))
  if (word !== null) return `"${word[0]}"`
  const count = sentence.split(/\s+/).filter((part) => /\w/.test(part)).length
  return count > 25 ? `${count} words` : null
}

test('comments and Markdown are plain English', () => {
  const files = globSync(FILES, {
    cwd: ROOT,
    exclude: (file) => /language\.test|node_modules/.test(String(file)),
  })
  const faults = files.flatMap((file) => {
    const text = readFileSync(new URL(file, ROOT), 'utf8')
    const sentences = extractPassages(file, text).flatMap(splitSentences)
    const name = BANNED_NAMES.exec(file + text)
    const faulty = sentences.filter((sentence) => findFault(sentence) !== null)
    return [
      ...faulty.map((sentence) => `${file}: ${findFault(sentence)}: ${sentence}`),
      ...(name === null ? [] : [`${file}: the name ${name[0]}`]),
    ]
  })
  assert.deepEqual(faults, [])
  assert.notEqual(findFault('What it does.'), null)
})
