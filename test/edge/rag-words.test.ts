import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { startRag } from './rag-help.ts'

/** Collections find the words that people type, in the languages of their files. */

const { write, index, search } = await startRag()

write({
  'mietvertrag.txt':
    'Der Mieter und die Mieterin zahlen nicht mehr, wenn die Häuser mit dem Garten verkauft werden, für die der Vertrag gilt.\n',
  'bail.txt':
    'Les locataires des maisons paient pour une durée de trois ans. Le bail est conclu pour les deux parties et lie des voisins.\n',
  'invoice.txt': 'Invoice INV-40718 of Tuesday: Amount:USD4,711.00;VAT19%\n',
  'contract.txt': '采购合同由供应商签订。\n',
  'languages.md': '# Languages\n\nR is for statistics. C++ is compiled, as Go is.\n',
  'arabic.txt': 'كتب مُحَمَّد رسالة\n',
})
const indexed = await index({ path: '.', collection_name: 'words' })
assert.equal(indexed.json?.total_documents, 6, indexed.text)

describe('a search finds', () => {
  for (const [what, query, source] of [
    ['another form of a German word', 'Haus', 'mietvertrag.txt'],
    ['another form of a French word', 'maison', 'bail.txt'],
    ['digits behind letters', '40718', 'invoice.txt'],
    ['an identifier without its hyphen', 'INV40718', 'invoice.txt'],
    ['an amount behind a currency', '711', 'invoice.txt'],
    ['a word of a script without spaces', '合同', 'contract.txt'],
    ['a single character', '商', 'contract.txt'],
    ['a word without its marks', 'محمد', 'arabic.txt'],
    ['a single letter', 'R', 'languages.md'],
    ['a common word', 'go', 'languages.md'],
    ['a word with signs', 'c++', 'languages.md'],
    ['a phrase', '"供应商"', 'contract.txt'],
  ] as const)
    test(what, async () => {
      const answer = await search(query, { collection_name: 'words' })
      assert.equal(answer.json.results[0]?.metadata.source, source, answer.text)
    })
})
