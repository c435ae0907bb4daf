import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { test } from 'node:test'

/** Checks every comment and Markdown file against the language rules of CONTRIBUTING that a machine can check. */

const ROOT = new URL('../../', import.meta.url)
const FILES = '{*.md,{edge,sql,tasks,workers,test,deploy}/**/*.{ts,js,sql,css,html,md}}'
const OPENINGS =
  /^(What|Whatever|Whether|Who|Whoever|Whose|How|Of|Those that|Those who|That|Which)\b(?!.*\?$)/
const WORDS =
  /\b(mend(s|ed|ing)?|at once|anew|amid|for ever|as long as|switch(es|ed)? off|beside|(is|are|was|were|be) (told|had)|known of|put back|sent? again|told|nobody)\b/i
/** Names that the glossary replaced. */
const NAMES = /feelPulse|housekeep|spareJobs|repairJobs|sendAgain|switched_?off|settledUntil/i
const TOKENS: Readonly<Record<string, RegExp>> = {
  ts: /'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`|\/\*[\s\S]*?\*\/|(?:\/\/[^\n]*\n[ \t]*)*\/\/[^\n]*/g,
  sql: /(?:--[^\n]*\n[ \t]*)*--[^\n]*|'(?:''|[^'])*'/g,
  css: /\/\*[\s\S]*?\*\//g,
  html: /<!--[\s\S]*?-->/g,
}

/** Comments of a source file; paragraphs, list items and table cells of a Markdown file. */
function passagesOf(file: string, text: string): string[] {
  if (file.endsWith('.md'))
    return text.replace(/```[\s\S]*?```|<[^>]*>|^#.*/gm, '').split(/\n\n|\n *[-*|] |\n *\d+\. |\|/)
  const tokens = text.match(TOKENS[file.split('.').pop()!.replace('js', 'ts')]!) ?? []
  return tokens.filter((token) => !/^['"`]/.test(token))
}

function sentencesOf(passage: string): string[] {
  const marks = /^\s*(\/\*\*?|\*\/|\*|\/\/|--|<!--)( |$)|\*\/|-->/gm
  const text = passage.replace(marks, '').replace(/\s+/g, ' ')
  return text.trim().split(/(?<=[.!?:])\s+(?=[A-Z`(])|(?:^|\s)- /)
}

function faultOf(sentence: string): string | null {
  const word = OPENINGS.exec(sentence) ?? WORDS.exec(sentence.replace(/`[^`]*`/g, ''))
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
    const sentences = passagesOf(file, text).flatMap(sentencesOf)
    const name = NAMES.exec(file + text)
    const faulty = sentences.filter((sentence) => faultOf(sentence) !== null)
    return [
      ...faulty.map((sentence) => `${file}: ${faultOf(sentence)}: ${sentence}`),
      ...(name === null ? [] : [`${file}: the name ${name[0]}`]),
    ]
  })
  assert.deepEqual(faults, [])
  assert.notEqual(faultOf('What it does.'), null)
})
