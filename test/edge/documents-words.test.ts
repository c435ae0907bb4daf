import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { createEmail, getSharedEdge } from './harness.ts'

/** A search finds numbers, dates and words in every usual spelling and script. */

const { api, query } = await getSharedEdge()
const PATH = '/api/v1/documents'
let count = 0
const registerAccount = async () => (await api.register(createEmail())).token

/** Inserts a document with one page and a title of another word. */
async function createDocument(token: string, text: string): Promise<number> {
  const { id } = (await api.upload(token, `File ${++count}`, { fields: { title: 'Untitled' } })).json
  await query(
    `insert into document_page (document_id, page_number, status, method, text, job_id) values ($1, 1, 'read', 'text_layer', $2, $3)`,
    [id, text, randomUUID()],
  )
  return id
}

interface Found {
  readonly ids: readonly number[]
  readonly total: number
  readonly isExact: boolean
}

async function search(token: string, text: string): Promise<Found> {
  const answer = await api.get(`${PATH}?search=${encodeURIComponent(text)}&page_size=200`, { token })
  assert.equal(answer.status, 200, answer.text)
  const { items, total, total_is_exact: isExact } = answer.json
  return { ids: items.map(({ id }: { id: number }) => id).sort(), total, isExact }
}

// Each text with searches that find it, and searches that don't.
const TEXTS: Readonly<
  Record<string, readonly [text: string, found: readonly string[], missed?: readonly string[]][]>
> = {
  'digits behind letters, signs and hyphens': [
    [
      'Invoice INV-40718 of today',
      ['40718', 'INV-40718', 'inv40718', '"INV 40718"', 'INV-407'],
      ['40719', 'INV-0718'],
    ],
    ['Order PO-4500012345/7', ['4500012345', 'PO-4500012345', 'PO4500012345', '4500012345/7']],
    [
      'Credit note total -17.25 EUR',
      ['17.25', '-17.25 17.25', '17,25'].slice(0, 1).concat('17,25'),
      ['17.26'],
    ],
    ['Amount:USD4,711.00;VAT19%', ['4711.00', 'USD4,711.00', '4.711,00', '4711', 'vat19', '19%'], ['4712']],
    ['注文番号12345号', ['12345', '番号12345号']],
    ['Account A4711-B', ['4711', 'A4711', 'a-4711', 'A4711-B']],
    ['part_no=AB12CD34;', ['AB12CD34', 'ab12', 'AB-12']],
    ['№42/2026-АБВ', ['42/2026', 'абв', 'АБВ']],
  ],
  'numbers in groups': [
    ['IBAN DE89 3704 0044 0532 0130 00', ['DE89370400440532013000', 'DE89', '"DE89 3704 0044"']],
    ['Phone: +49 (89) 123-4567', ['49891234567', '+49 89 1234567', '"123 4567"']],
    ['ISBN 978-3-16-148410-0', ['9783161484100', '978-3-16-148410-0']],
    ['ISBN 9783161484100', ['978-3-16-148410-0']],
  ],
  'letters, marks and digits of other scripts': [
    [
      'فاتورة إلى أحمد رقم ١٢٣٤ مُحَمَّد العـــربية',
      ['احمد', 'أحمد', 'محمد', '1234', '١٢٣٤', 'العربية', 'فاتوره'],
    ],
    ['گزارش شماره ۱۲۳۴ برای کتاب', ['1234', 'كتاب', 'کتاب', 'گزارش']],
    ['שָׁלוֹם עולם', ['שלום', 'עולם']],
    ['कुल राशि ₹१२३४', ['1234', 'राशि', 'कुल राशि'], ['रश']],
    ['Договор № 7 ПОКУПАТЕЛЬ Ёлкин', ['договор', 'покупатель', 'ЕЛКИН', 'ёлкин']],
    ['ΟΔΟΣ Αθηνών', ['οδος', 'οδός', 'αθηνων']],
    ['İstanbul Işık', ['istanbul', 'ISTANBUL', 'isik']],
    ['m² H₂O ﬁnance Ｆｕｌｌ １２３', ['m2', 'H2O', 'finance', 'full', '123']],
    ['Straße Æther Łódź naïve', ['strasse', 'STRASSE', 'aether', 'lodz', 'naive']],
    ['e\u0301clair nai\u0308ve', ['éclair', 'eclair', 'naïve']],
    ['C++ and C# and F#', ['C++', 'c#', 'F#']],
  ],
  'scripts without spaces': [
    [
      '根据本采购合同的约定，供应商应交付全部货物。',
      ['合同', '采购', '采购合同', '供应商', '货', '物', '约定'],
      ['合约', '物货'],
    ],
    ['東京都の請求書ーカタカナ', ['東京', '京都', '請求書', 'カタ', 'カ', 'ナ'], ['京東']],
    ['ﾃﾞｰﾀ入力', ['データ', '入力']],
    ['한국어문서의 계약서입니다', ['한국', '계약서', '문서', '계약']],
    ['ใบแจ้งหนี้เลขที่ ๑๒๓๔', ['แจ้งหนี้', 'ใบ', '1234', 'เลขที่']],
    ['ສັນຍາຊື້ຂາຍ', ['ສັນຍາ', 'ຊື້']],
    ['កិច្ចសន្យាទិញលក់', ['សន្យា']],
    ['စာချုပ်ဝယ်ယူ', ['ချုပ်']],
    ['使用iPhone15手机', ['iphone', 'iPhone15', '手机', '15']],
  ],
  dates: [
    ...[
      '18-Mar-2026',
      '18. März 2026',
      '18 марта 2026 г.',
      '2026年3月18日',
      '２０２６年０３月１８日',
      '2026년 3월 18일',
      '令和8年3月18日',
      '二〇二六年三月十八日',
      '18 de março de 2026',
      '18th of March, 2026',
      "18 Mar '26",
      '18 Mart 2026',
      '18 marca 2026',
      '2026. március 18.',
      '18 มีนาคม 2569',
      '١٨ مارس ٢٠٢٦',
      '18 Μαρτίου 2026',
      'ngày 18 tháng 3 năm 2026',
      '20260318',
      '18.03.26',
    ].map((text): [string, string[]] => [
      text,
      ['2026-03-18', '18.03.2026', '18-Mar-2026', '"18 March 2026"', '2026年3月18日'],
    ]),
  ],
  stems: [
    ['The companies ran their libraries', ['company', 'library', 'companies'], ['companion']],
    ['der die und nicht mit Verträge', ['vertrage', 'Verträgen']],
  ],
}

for (const [kind, cases] of Object.entries(TEXTS))
  test(`finds ${kind}`, async () => {
    for (const [text, found, missed = []] of cases) {
      const token = await registerAccount()
      const id = await createDocument(token, text)
      for (const typed of found)
        assert.deepEqual((await search(token, typed)).ids, [id], `${text} by ${typed}`)
      for (const typed of missed)
        assert.deepEqual((await search(token, typed)).ids, [], `${text} by ${typed}`)
    }
  })

describe('words of one owner', () => {
  test('are found whatever other owners have', async () => {
    const [token, stranger] = [await registerAccount(), await registerAccount()]
    const id = await createDocument(token, 'Zusatzkrankenversicherungsbeitragsbescheinigung harbour')
    const words = Array.from(
      { length: 1500 },
      (_, i) => `versicherung${i.toString(36)}aa harbo${i.toString(36)}r`,
    )
    await createDocument(stranger, words.join(' '))
    assert.deepEqual(await search(token, 'versicherung'), { ids: [id], total: 1, isExact: true })
    assert.deepEqual((await search(token, 'harbuor')).ids, [id])
    assert.deepEqual((await search(stranger, 'zusatz')).ids, [])
  })

  test('are all found in scripts without spaces, with an exact total', async () => {
    const { token, id: accountId } = await api.register(createEmail())
    await query(
      `with made as (insert into document (owner_id, title, media_type, byte_size, sha256)
         select $1, 'Untitled', 'text/plain', 1, sha256(n::text::bytea) from generate_series(1, 240) n returning id)
       insert into document_page (document_id, page_number, status, method, text, job_id)
       select id, 1, 'read', 'text_layer', '第' || id || '号采购合同由本公司与供应商于今日签订', gen_random_uuid() from made`,
      [accountId],
    )
    for (const typed of ['合同', '采购', '公司', '供应商']) {
      const { total, isExact } = await search(token, typed)
      assert.deepEqual([total, isExact], [240, true], typed)
    }
  })

  test('are found to the end of a page of any length', async () => {
    const token = await registerAccount()
    const rows = Array.from({ length: 8000 }, (_, i) => `${i};Article ${(i * 7919) % 8000};${i % 97}.50`)
    rows[7990] += ';quagga okapi'
    const id = await createDocument(token, rows.join('\n'))
    assert.deepEqual((await search(token, 'quagga')).ids, [id])
    assert.deepEqual((await search(token, '"quagga okapi"')).ids, [id])
    assert.deepEqual((await search(token, '7999')).ids, [id])
    assert.deepEqual((await search(token, '-quagga article')).ids, [])
    const { json } = await api.get(`${PATH}?search=quagga&hits=true`, { token })
    assert.match(json.items[0].hits[0].snippet, /;quagga okapi/)
    await query(`update document_page set text = 'short' where document_id = $1`, [id])
    assert.deepEqual((await search(token, 'quagga')).ids, [])
  })

  test('with too many parts of words leave the total inexact', async () => {
    const token = await registerAccount()
    const words = Array.from(
      { length: 1200 },
      (_, i) => `${String.fromCharCode(97 + (i % 26), 97 + ((i / 26) % 26), 97 + i / 676)}zebra`,
    )
    await createDocument(token, words.join(' '))
    const { isExact, total } = await search(token, 'zebra')
    assert.equal(isExact, false)
    assert.ok(total >= 1)
  })
})
