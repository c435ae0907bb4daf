import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createTestDatabase } from '../database.ts'

/** The terms of texts and queries, and the language of a text. */

const { query } = await createTestDatabase()

/** Asserts that a text has the terms of these words, in order, and in any order the common terms of others. */
async function assertTerms(
  text: string,
  words: readonly string[],
  common: readonly string[] = [],
  dictionary = 'english_stem',
): Promise<void> {
  const [row] = await query(
    `select terms, array(select unnest(common_terms) order by 1) as common,
       array(select rag_term(word) from unnest($3::text[]) with ordinality w(word, n) order by n) as expected,
       array(select rag_term(word) from unnest($4::text[]) word order by 1) as expected_common
     from rag_terms($1, $2::text::regdictionary)`,
    [text, dictionary, words, common],
  )
  assert.deepEqual(row!.terms, row!.expected, text)
  assert.deepEqual(row!.common, row!.expected_common, text)
}

describe('terms', () => {
  test('are stems in order, without common words', async () => {
    await assertTerms('The Foxes’ dens', ['fox', 'den'], ['the'])
    await assertTerms('Ärger Café ﬁne', ['arger', 'cafe', 'fine'])
    await assertTerms('What is R, or Go, or C++?', ['cplusplus'], ['what', 'is', 'r', 'or', 'go'])
    await assertTerms('', [])
  })

  test('are those of the language', async () => {
    await assertTerms('Die Häuser und die Gärten', ['haus', 'gart'], ['die', 'und'], 'german_stem')
    await assertTerms('des maisons de ville', ['maison', 'vill'], ['des', 'de'], 'french_stem')
  })

  test('are the parts of identifiers, too', async () => {
    await assertTerms('readFileSync HTTPServer snake_case', [
      ...['readfilesync', 'httpserver', 'snake', 'case'],
      ...['read', 'file', 'sync', 'http', 'server'],
    ])
  })

  test('are digits behind letters', async () => {
    await assertTerms('Invoice INV-40718', ['invoic', 'inv', '40718'])
    await assertTerms('INV40718', ['inv', '40718'])
  })

  test('are pairs of characters in scripts without spaces', async () => {
    await assertTerms('采购合同', ['采购', '购合', '合同'], ['采', '购', '合', '同'])
    await assertTerms('猫', [], ['猫'])
  })

  test('exclude data', async () => {
    await assertTerms('x'.repeat(65), [])
    await assertTerms('x'.repeat(64), ['x'.repeat(64)])
  })
})

test('the dictionary is that of the most frequent words', async () => {
  for (const [dictionary, text] of [
    ['german_stem', 'Der Vertrag und die Anlage gelten nicht für den Mieter, mit dem er endet.'],
    ['french_stem', 'Le contrat est conclu pour une durée de trois ans et lie les parties des deux pays.'],
    ['russian_stem', 'Это договор о том, что и как или когда будет сделано для дома.'],
    ['english_stem', 'The contract and the annex end with that year.'],
    ['english_stem', 'die Maße'],
    ['english_stem', '合同'],
    ['english_stem', ''],
  ] as const) {
    const [row] = await query('select rag_dictionary($1) as dictionary', [text])
    assert.equal(row!.dictionary, dictionary, text)
  }
})
