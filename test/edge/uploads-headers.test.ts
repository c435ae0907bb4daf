import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cleanFileName, parseDisposition, parseMediaType } from '../../edge/files/upload-headers.ts'

/** Encodes a header as browsers send it, in UTF-8. The splitter decodes each byte as one character. */
const encodeHeader = (text: string): string => Buffer.from(text).toString('latin1')

const parseParameters = (parameters: string) =>
  parseDisposition({ 'content-disposition': [encodeHeader(`form-data; ${parameters}`)] })

test('cleans file names', () => {
  const names: [string, string][] = [
    ['filename="C:\\Users\\me\\a b.pdf"', 'a b.pdf'],
    ['filename="../../etc/passwd"', 'passwd'],
    ['filename="a\\"b\\\\c.txt"', 'c.txt'],
    ['filename="with ; semicolon=1.txt"', 'with ; semicolon=1.txt'],
    ['filename=bare.txt', 'bare.txt'],
    ['filename="tab\tand\x7fdel.txt"', 'tabanddel.txt'],
    ['filename=""', ''],
    ['filename=".."', ''],
    ['filename="folder/"', ''],
    ['filename="fallback.txt"; filename*=UTF-8\'\'na%C3%AFve%20%E2%82%AC.txt', 'naïve €.txt'],
    ['filename*=utf-8\'en\'first.txt; filename="second.txt"', 'first.txt'],
    ["filename*=ISO-8859-1''%FCber.txt", 'über.txt'],
    ['filename="kept.txt"; filename*=UTF-8\'\'%FF', 'kept.txt'],
    ["filename*=UTF-8''..%2F..%2Fevil%00.txt", 'evil.txt'],
    ['filename="a%22b%22 100%25.txt"', 'a"b" 100%25.txt'],
    ['filename="a%0D%0Ab.txt"', 'ab.txt'],
    ['filename=a%22b.txt', 'a"b.txt'],
    ['filename="in\u202efdp.exe"', 'infdp.exe'],
    ['filename="\u2066a\u2069\u200f.txt"', 'a.txt'],
    ['filename="Grüße 😀.txt"', 'Grüße 😀.txt'],
    [`filename="${'😀'.repeat(300)}"`, '😀'.repeat(255)],
  ]
  for (const [given, expected] of names) {
    const { name, fileName } = parseParameters(`name="file"; ${given}`)
    assert.deepEqual([name, cleanFileName(fileName)], ['file', expected], given)
  }
})

test('a part without a file name is a field, and only form-data parts have names', () => {
  assert.deepEqual(parseParameters('name="a"'), { name: 'a', fileName: undefined })
  assert.deepEqual(parseParameters('NAME="first"; name="second"'), { name: 'first', fileName: undefined })
  assert.equal(parseDisposition({ 'content-disposition': ['attachment; name="a"'] }).name, undefined)
  assert.equal(parseDisposition({}).name, undefined)
})

test('normalizes media types and ignores invalid ones', () => {
  const types = { 'Text/Plain; charset=x': 'text/plain', 'a b/c': undefined, '': undefined, none: undefined }
  for (const [given, expected] of Object.entries(types)) {
    assert.equal(parseMediaType({ 'content-type': [given] }), expected)
  }
  assert.equal(parseMediaType({}), undefined)
})

test('parses adversarial headers in linear time', () => {
  const start = process.cpuUsage()
  parseParameters(`name="${'\\'.repeat(50_000)}; filename=${'"\\'.repeat(20_000)}`)
  parseParameters(`name=a${'; '.repeat(30_000)}`)
  parseParameters(`name=a;${' '.repeat(60_000)}x`)
  assert.ok(process.cpuUsage(start).user < 1_000_000)
})
