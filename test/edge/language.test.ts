import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { test } from 'node:test'

/** The rules of CONTRIBUTING for texts that a machine can check, for every comment and every Markdown file. */

const ROOT = new URL('../../', import.meta.url)
const OPENINGS = /^(What|Whatever|Whether|Who|Whoever|Whose|How|Of|Those that|Those who|That|Which)\b/
const WORDS =
  /\b(mend(s|ed|ing)?|at once|anew|amid|for ever|as long as|switch(es|ed)? off|beside|(is|are|was|were|be) (told|had)|known of|put back|sent? again|told|nobody)\b/i
/** Names that the project no longer uses. */
const NAMES = /feelPulse|housekeep|spareJobs|repairJobs|sendAgain|switched_?off|settledUntil/i
const MAX_WORDS = 25
const TOKENS: Readonly<Record<string, RegExp>> = {
  ts: /'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`|\/\*[\s\S]*?\*\/|(?:\/\/[^\n]*\n[ \t]*)*\/\/[^\n]*/g,
  sql: /(?:--[^\n]*\n[ \t]*)*--[^\n]*|'(?:''|[^'])*'/g,
  css: /\/\*[\s\S]*?\*\//g,
  html: /<!--[\s\S]*?-->/g,
}

const kindOf = (file: string): string => file.split('.').pop()!.replace('js', 'ts')

/** The comments of a source file, or the paragraphs, list items and table cells of a Markdown file. */
function passagesOf(file: string, text: string): string[] {
  if (!file.endsWith('.md'))
    return (text.match(TOKENS[kindOf(file)]!) ?? []).filter((token) => !/^['"`]/.test(token))
  return text.replace(/```[\s\S]*?```|<[^>]*>|^#.*/gm, '').split(/\n\n|\n *[-*|] |\n *\d+\. |\|/)
}

function sentencesOf(passage: string): string[] {
  const bare = passage.replace(/^\s*(\/\*\*?|\*\/|\*|\/\/|--|<!--)( |$)/gm, '').replace(/\*\/|-->/g, '')
  return bare
    .replace(/\s+/g, ' ')
    .trim()
    .split(/(?<=[.!?:])\s+(?=[A-Z`(])|(?:^|\s)- /)
}

function faultsOf(file: string, text: string): string[] {
  return passagesOf(file, text)
    .flatMap(sentencesOf)
    .flatMap((sentence) => {
      const count = sentence.split(/\s+/).filter((word) => /\w/.test(word)).length
      const opening = sentence.endsWith('?') ? null : OPENINGS.exec(sentence)
      const word = opening ?? WORDS.exec(sentence.replace(/`[^`]*`/g, ''))
      const why = word === null ? (count > MAX_WORDS ? `${count} words` : null) : `"${word[0]}"`
      return why === null ? [] : [`${file}: ${why}: ${sentence}`]
    })
}

test('texts are plain English', () => {
  const files = globSync('{*.md,{edge,sql,tasks,workers,test,deploy}/**/*.{ts,js,sql,css,html,md}}', {
    cwd: ROOT,
  })
  const faults = files.flatMap((file) => {
    const text = readFileSync(new URL(file, ROOT), 'utf8')
    const name = file.endsWith('language.test.ts') ? null : NAMES.exec(file + text)
    return [
      ...faultsOf(file, text),
      ...(name === null ? [] : [`${file}: the name ${name[0]} is no longer used`]),
    ]
  })
  assert.deepEqual(faults, [])
  assert.equal(faultsOf('a.ts', '// What it is told.\n').length, 1)
})
