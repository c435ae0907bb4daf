import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { encode } from 'iconv-lite'
import { decodeText } from '../../tasks/formats/decode.ts'
import { resolveEncoding } from '../../tasks/formats/encodings.ts'

const LETTERS: Readonly<Record<string, string>> = {
  Russian:
    'Настоящий договор заключён между Поставщиком и Покупателем. Оплата производится в течение десяти дней.\n',
  Ukrainian:
    "Постачальник зобов'язується передати товар у строк, а Покупець його оплатити протягом десяти днів.\n",
  Japanese: 'お世話になっております。請求書をお送りいたします。ご確認ください。\n',
  Simplified: '采购合同编号二零二六，供应商为上海贸易有限公司，签订日期三月十九日。\n',
  Traditional: '採購合約編號二零二六，供應商為台北貿易有限公司，簽訂日期三月十九日。\n',
  Korean: '안녕하세요. 청구서를 보내드리니 확인하여 주시기 바랍니다.\n',
  Polish:
    'Umowa została zawarta pomiędzy Dostawcą a Nabywcą; płatność następuje w ciągu dziesięciu dni. Łódź.\n',
  Czech: 'Dodavatel se zavazuje předat zboží včas a Kupující se zavazuje je převzít. Žluťoučký kůň.\n',
  Greek: 'Το συμβόλαιο υπογράφηκε μεταξύ των μερών στην Αθήνα.\n',
  Turkish:
    "Bu sözleşme taraflar arasında İstanbul'da imzalanmıştır. Alıcı malı teslim almayı taahhüt eder.\n",
  Hebrew: 'חוזה זה נערך בין הספק לבין הקונה. התשלום יבוצע בתוך עשרה ימים.\n',
  Arabic: 'تم توقيع العقد بين الطرفين في مدينة القاهرة يوم الاثنين.\n',
  Lithuanian:
    'Tiekėjas įsipareigoja perduoti prekes laiku, o Pirkėjas įsipareigoja jas priimti ir sumokėti.\n',
  Thai: 'สัญญานี้ทำขึ้นระหว่างคู่สัญญาทั้งสองฝ่ายที่กรุงเทพมหานคร\n',
  German: 'Der Käufer verpflichtet sich, die Ware anzunehmen. Grüße aus Köln, Größe und Öl für Müller.\n',
  French: 'Le contrat a été signé à Besançon le cinq août, déjà payé par chèque.\n',
}

const ENCODINGS: readonly (readonly [letter: string, encodings: string])[] = [
  ['Russian', 'windows-1251 koi8-r cp866 iso-8859-5'],
  ['Ukrainian', 'windows-1251 koi8-u'],
  ['Japanese', 'shift_jis euc-jp'],
  ['Simplified', 'gb18030'],
  ['Traditional', 'big5'],
  ['Korean', 'euc-kr'],
  ['Polish', 'windows-1250 iso-8859-2 cp852'],
  ['Czech', 'windows-1250 iso-8859-2 cp852'],
  ['Greek', 'windows-1253 iso-8859-7'],
  ['Turkish', 'windows-1254'],
  ['Hebrew', 'windows-1255'],
  ['Arabic', 'windows-1256'],
  ['Lithuanian', 'windows-1257'],
  ['Thai', 'windows-874'],
  ['German', 'windows-1252 cp850 cp437'],
  ['French', 'windows-1252 cp850 cp437'],
]

describe('decoding', () => {
  for (const [letter, names] of ENCODINGS)
    for (const name of names.split(' '))
      test(`statistics find ${letter} in ${name}`, () => {
        assert.equal(decodeText(encode(LETTERS[letter]!, name))?.text, LETTERS[letter])
      })

  test('short texts are read, too', () => {
    for (const [text, name] of [
      ['1;Иванов;100\n2;Петров;200\n', 'windows-1251'],
      ['ДОГОВОР ПОСТАВКИ ТОВАРА', 'koi8-r'],
      ['ДОГОВОР ПОСТАВКИ ТОВАРА', 'cp866'],
      ['品名,数量\nりんご,12\n', 'shift_jis'],
      ['품명,수량\n사과,12\n', 'euc-kr'],
      ['Müller', 'windows-1252'],
      ['Café', 'windows-1252'],
      ['Preis: 12 €', 'windows-1252'],
      ['Temp: 21°C\nTemp: 22°C', 'windows-1252'],
      ['He said “hello” – and it’s fine', 'windows-1252'],
    ] as const)
      assert.equal(decodeText(encode(text, name))?.text, text, `${text} in ${name}`)
  })

  test('ISO-2022-JP has escapes that coloured logs do not have', () => {
    const bytes = Buffer.from('\x1b$BF|K\\8l\x1b(B, 12\n', 'latin1')
    assert.deepEqual(decodeText(bytes), { text: '日本語, 12\n', encoding: 'iso-2022-jp' })
    assert.equal(decodeText(Buffer.from('\x1b[31mred\x1b[0m'))?.encoding, 'utf-8')
  })

  test('byte order marks come first, then the declaration', () => {
    assert.equal(decodeText(Buffer.from('\ufeffhello', 'utf16le'), { given: 'koi8-r' })?.text, 'hello')
    assert.deepEqual(decodeText(encode('Größe', 'utf-32le', { addBOM: true })), {
      text: 'Größe',
      encoding: 'utf-32le',
    })
    assert.equal(decodeText(Buffer.from([0xcd, 0xe5, 0xf2]), { given: 'windows-1251' })?.text, 'Нет')
    assert.equal(decodeText(Buffer.from([0xcd, 0xe5, 0xf2]), { given: 'koi8-r' })?.text, 'мЕР')
    assert.equal(decodeText(encode('Größe', 'cp850'), { given: 'cp850' })?.text, 'Größe')
  })

  test('an encoding of the file counts if it fits, one of a person must fit', () => {
    const bytes = encode(LETTERS.Russian!, 'koi8-r')
    const expected = { text: LETTERS.Russian, encoding: 'koi8-r' }
    assert.deepEqual(decodeText(bytes, { declared: 'utf-8' }), expected)
    assert.deepEqual(decodeText(bytes, { declared: 'koi8-r' }), expected)
    assert.equal(decodeText(Buffer.from('Größe'), { declared: 'windows-1251' })?.text, 'Größe')
    assert.equal(decodeText(bytes, { given: 'utf-8' }), null)
    assert.equal(decodeText(Buffer.from('Größe'), { given: 'windows-1251' })?.text, 'GrГ¶Гџe')
  })

  test('UTF-16 needs no mark, in any script', () => {
    for (const text of ['Walrus;12,50\r\n', '品名,数量\r\nりんご,12\r\n', 'Имя: Иван\n', 'שלום, עולם 1\n']) {
      const little = Buffer.from(text, 'utf16le')
      assert.deepEqual(decodeText(little), { text, encoding: 'utf-16le' })
      assert.deepEqual(decodeText(little.swap16()), { text, encoding: 'utf-16be' })
    }
  })

  test('NUL padding is dropped, and damaged UTF-8 stays UTF-8', () => {
    assert.equal(
      decodeText(Buffer.from('a line of a log\0\0 and more\n'))?.text,
      'a line of a log and more\n',
    )
    const damaged = Buffer.concat([Buffer.from('Grüße aus Köln, schöne Größe '), Buffer.from([0xff])])
    assert.deepEqual(decodeText(damaged), { text: 'Grüße aus Köln, schöne Größe \ufffd', encoding: 'utf-8' })
  })

  test('bytes that no encoding explains yield no text', () => {
    const noise = Uint8Array.from({ length: 400 }, (_, i) => 0x80 | ((i * 7919 + ((i * i) >> 3)) & 0x7f))
    assert.equal(decodeText(noise), null)
    const mixed = (a: Buffer, b: Buffer) => decodeText(Buffer.concat([a, b]))
    assert.equal(mixed(Buffer.from('Grüße aus Köln\n'), encode('Grüße aus Köln\n', 'latin1')), null)
    assert.equal(mixed(Buffer.from('Привет, мир\n'), encode('Привет, мир\n', 'windows-1251')), null)
    assert.equal(mixed(encode(LETTERS.Russian!, 'koi8-r'), encode(LETTERS.Russian!, 'windows-1251')), null)
    assert.equal(decodeText(Buffer.from([0xd6, 0xd0, 0xce])), null)
  })

  test('letters beyond ASCII are found anywhere in a large text', () => {
    const ascii = 'plain line\n'.repeat(20_000)
    const text = decodeText(encode(`${ascii}${LETTERS.Russian}`, 'windows-1251'))?.text
    assert.ok(text?.endsWith(LETTERS.Russian!))
  })

  test('encodings have many labels', () => {
    for (const [label, name] of [
      ['UTF8', 'utf-8'],
      ['Latin1', 'windows-1252'],
      ['sjis', 'shift_jis'],
      ['CP932', 'shift_jis'],
      ['cp1251', 'windows-1251'],
      ['866', 'ibm866'],
      ['IBM850', 'cp850'],
      ['cp437', 'cp437'],
      ['utf16le', 'utf-16le'],
      ['utf32', 'utf-32le'],
      ['949', 'euc-kr'],
      ['klingon', null],
      ['', null],
    ] as const)
      assert.equal(resolveEncoding(label), name, label)
  })
})
