import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

/** The ASVS table in `edge/SECURITY.md` must name existing files and count its rows correctly. */

const ROOT = new URL('../../', import.meta.url)
const securityText = readFileSync(new URL('edge/SECURITY.md', ROOT), 'utf8')
const rows = securityText
  .split('\n')
  .filter((line) => /^\| \d+\.\d+\.\d+ \|/.test(line))
  .map((line) => line.split('|').map((cell) => cell.trim()))
const FILE_PATTERN = /`([\w.-]+(?:\/[\w.*-]+)+\.\w+)`/g

test('every row has a state and a unique requirement, and fulfilled ones name a test', () => {
  assert.ok(rows.length > 200)
  assert.equal(new Set(rows.map(([, id]) => id)).size, rows.length)
  for (const [, id, what, state, where] of rows) {
    assert.ok(['held', 'n/a', 'open'].includes(state!), id)
    assert.ok(what !== '' && where !== '', id)
    if (state === 'held') assert.match(where!, /`test\/[^`]+\.test\.ts`/, id)
  }
})

test('the counts in the introduction match the rows', () => {
  const count = (state: string) => rows.filter((row) => row[3] === state).length
  const [, held, none, open] = /(\d+) are `held`, (\d+) are `n\/a` and (\d+) are `open`/
    .exec(securityText)!
    .map(Number)
  assert.deepEqual([held, none, open], ['held', 'n/a', 'open'].map(count))
})

test('every named file exists', () => {
  const named = [...securityText.matchAll(FILE_PATTERN)].map(([, file]) => file!)
  assert.ok(named.length > 200)
  assert.deepEqual(
    [...new Set(named)].filter((file) => !existsSync(new URL(file, ROOT))),
    [],
  )
})

/** Patterns that no file of the service may contain, keyed by requirement. */
const FORBIDDEN_PATTERNS: Readonly<Record<string, RegExp>> = {
  '1.2.5: no command runs in a shell': /\bshell: *true|[^.\w](exec|execSync)\(/,
  '12.3.2: certificates of servers are validated': /rejectUnauthorized|NODE_TLS_REJECT_UNAUTHORIZED/,
  // The page of OpenID Connect keeps a random value until the issuer returns. Pages keep the time of
  // noticing that a proxy holds streams back.
  '14.3.3: browsers store nothing':
    /\b(localStorage|indexedDB)\b|\bsessionStorage\b(?!\.(get|set|remove)Item\('(oidc-binding|buffered-since)')/,
  '6.2.7: passwords may be pasted': /onpaste|addEventListener\('paste'/,
}

for (const [what, pattern] of Object.entries(FORBIDDEN_PATTERNS))
  test(what, () => {
    const files = globSync('{edge,sql,tasks,workers}/**/*.{ts,js,html}', { cwd: fileURLToPath(ROOT) })
    assert.ok(files.length > 400)
    assert.deepEqual(
      files.filter((file) => pattern.test(readFileSync(new URL(file, ROOT), 'utf8'))),
      [],
    )
  })
