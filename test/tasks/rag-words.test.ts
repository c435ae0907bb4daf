import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { stemWord } from '../../tasks/rag/stem.ts'
import { createTestDatabase } from '../database.ts'

const { query } = await createTestDatabase()

// Prefixes and suffixes whose combinations reach every branch of the stemmer.
const PREFIXES = `a ab abil accommod adopt agre allow anim ann appl arsen arti bas be bel bl boy bri bu can car ce ch commun con cop cri
  cry d de deb defens differ dig dri dy earl ed electri emerg en equat fa feed fl fil fiz form gener go grad gyr ha hap hes homo hop
  i in inter ir ism la lat later li log lu mat me mo mon n nat neg ni o of op or organ orient past plastic pl pr prob pub radic rat re
  rel respons rev ri roll s sa sens siz ski sky sp st succe t tann ti tra triplic troubl un univers us val vari vi viet w x y yell`
const SUFFIXES = `s es ss sses ies ied us ed eed eedly edly ing ingly ated ating bled bling ized izing hopping opping ping tting y ey ay
  ly li ational tional enci anci izer ization ation ator alism aliti alli al fulness ful ousli ousness ous iveness iviti ive biliti bli
  able ible ogi logi fulli lessli less entli ent ement ment ant ance ence ism ate iti ion sion tion e le ll lle ness ative icate
  iciti ical alize ic er est ist ogist n ne w x ye`

describe('words', () => {
  test('are stemmed as in PostgreSQL', async () => {
    const made = PREFIXES.split(/\s+/).flatMap((start) => SUFFIXES.split(/\s+/).map((end) => start + end))
    const ours = readFileSync(new URL('../../README.md', import.meta.url), 'utf8').toLowerCase()
    const words = [...new Set([...made, ...(ours.match(/\b[a-z]+\b/g) ?? [])])]
    const rows = await query(
      `select w, (ts_lexize('english_stem', w))[1] as stem from unnest($1::text[]) w`,
      [words],
    )
    // PostgreSQL returns no stem for its stop words.
    const known = rows.filter((row) => row.stem !== null)
    assert.ok(known.length > 10_000)
    const differ = known.filter((row) => stemWord(String(row.w)) !== row.stem)
    assert.deepEqual(
      differ.map((row) => `${row.w}: ${stemWord(String(row.w))}, not ${row.stem}`),
      [],
    )
  })
})
