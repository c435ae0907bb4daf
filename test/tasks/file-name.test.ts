import assert from 'node:assert/strict'
import { test } from 'node:test'
import { buildDocumentFileName } from '../../tasks/documents/file-name.ts'

test('a title gets the extension of its type, unless it has one', () => {
  for (const [title, type, name] of [
    ['Invoice 17', 'application/pdf', 'Invoice 17.pdf'],
    ['Invoice 17.PDF', 'application/pdf', 'Invoice 17.PDF'],
    ['Version 1.2', 'application/pdf', 'Version 1.2.pdf'],
    ['Messrs. Hill', 'text/plain', 'Messrs. Hill.txt'],
    ['Minutes of Mr.Smith', 'application/pdf', 'Minutes of Mr.Smith.pdf'],
    ['orders.csv', 'text/plain', 'orders.csv'],
    ['a recording.mp3', 'audio/mpeg', 'a recording.mp3'],
    ['unknown', 'application/octet-stream', 'unknown'],
    ['Contract v2.final', 'application/pdf', 'Contract v2.final.pdf'],
    ['Meeting', 'text/calendar', 'Meeting.ics'],
    ['Meeting v2.final', 'text/calendar', 'Meeting v2.final.ics'],
    ['Card', 'text/vcard', 'Card.vcf'],
    ['Film', 'text/vtt', 'Film.vtt'],
    ['Data', 'application/xml', 'Data.xml'],
    ['Data.gpx', 'application/xml', 'Data.gpx'],
    ['Logo', 'image/svg+xml', 'Logo.svg'],
    ['Photo', 'image/avif', 'Photo.avif'],
    ['Photo', 'image/bmp', 'Photo.bmp'],
    ['Photo', 'image/jp2', 'Photo.jp2'],
    ['Photo.jpeg', 'image/jpeg', 'Photo.jpeg'],
    ['Song', 'audio/x-m4a', 'Song.m4a'],
    ['Song', 'audio/ogg', 'Song.ogg'],
    ['main.py', 'text/plain', 'main.py'],
    ['constructor', 'constructor', 'constructor'],
  ] as const)
    assert.equal(buildDocumentFileName(title, type), name)
})
