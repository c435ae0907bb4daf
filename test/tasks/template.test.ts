import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { renderTemplate, type Template, validateTemplate } from '../../tasks/comms/template.ts'
import { createRunOptions } from '../runs.ts'

/** A template accepts only its declared variables, and needs a value for each of them. */

const createMail = (more: Partial<Template> = {}): Template => ({
  channel: 'email',
  subject: 'Hello {{name}}',
  text: 'Dear {{ name }}, {{count}} of {{count}}.',
  html: '<p title="{{name}}">{{name}}</p>',
  variables: [{ name: 'name' }, { name: 'count', default: '0' }],
  ...more,
})
const createText = (body: string, ...names: string[]): Template => ({
  channel: 'sms',
  text: body,
  variables: names.map((name) => ({ name })),
})
const findProblems = (template: Template): string[] =>
  validateTemplate(template).map(({ path, msg }) => `${path.join('.')}: ${msg}`)
const renderProblems = (template: Template, values: Record<string, string>): string[] => {
  const rendered = renderTemplate(template, values)
  assert.ok('problems' in rendered, JSON.stringify(rendered).slice(0, 200))
  return rendered.problems.map(({ path, msg }) => `${path.join('.')}: ${msg}`)
}

describe('a message', () => {
  test('has values in place of names, escaped only in HTML', () => {
    assert.deepEqual(renderTemplate(createMail(), { name: `<b>"Ada" & 'Co'` }), {
      subject: `Hello <b>"Ada" & 'Co'`,
      text: `Dear <b>"Ada" & 'Co', 0 of 0.`,
      html: '<p title="&#60;b&#62;&#34;Ada&#34; &#38; &#39;Co&#39;">&#60;b&#62;&#34;Ada&#34; &#38; &#39;Co&#39;</p>',
    })
  })

  test('lacks the parts that its template lacks', () => {
    assert.deepEqual(renderTemplate(createText('{{a}}{{b}}', 'a', 'b'), { a: '1', b: '2' }), {
      ...{ subject: null, text: '12', html: null },
    })
  })

  test('has values unchanged, whatever they contain', () => {
    for (const value of ['{{name}}', '{{count}}', '$&', '$1', '\\', '', '{{', '\u{1F600}'])
      assert.equal(
        (renderTemplate(createMail(), { name: 'x', count: value }) as { text: string }).text,
        `Dear x, ${value} of ${value}.`,
      )
  })

  test('is rejected with the names of missing or unknown values', () => {
    assert.deepEqual(renderProblems(createMail(), {}), ['name: is required by the template'])
    assert.deepEqual(renderProblems(createMail(), { name: 'x', Name: 'y', toString: 'z' }), [
      'Name: is not a variable of the template',
      'toString: is not a variable of the template',
    ])
    assert.deepEqual(renderProblems(createText('{{constructor}}', 'constructor'), {}), [
      'constructor: is required by the template',
    ])
    const hostile = JSON.parse('{"name": "x", "__proto__": "y"}') as Record<string, string>
    assert.deepEqual(renderProblems(createMail(), hostile), ['__proto__: is not a variable of the template'])
  })

  test('is rejected for a value that would split a header', () => {
    for (const name of ['a\r\nBcc: x@example.com', 'a\nb', 'a\rb', 'a\tb', 'a\u0085b', '\u007f'])
      assert.deepEqual(renderProblems(createMail(), { name }), [
        'name: must be one line without control characters, because the subject uses it',
      ])
    const inText = renderTemplate(createMail(), { name: 'x', count: 'a\r\nb' })
    assert.equal((inText as { text: string }).text, 'Dear x, a\r\nb of a\r\nb.')
  })

  test('is rejected if it is too long or empty, before it is built', () => {
    assert.deepEqual(renderProblems(createMail(), { name: 'x'.repeat(1000) }), [
      ': the subject would exceed 998 characters',
    ])
    assert.deepEqual(renderProblems(createMail({ subject: '{{name}}' }), { name: ' ' }), [
      ': the subject would be empty',
    ])
    assert.deepEqual(renderProblems(createText('{{a}}', 'a'), { a: '\n ' }), [': the text would be empty'])
    assert.deepEqual(renderProblems(createText('{{a}}!', 'a'), { a: 'x'.repeat(1600) }), [
      ': the text would exceed 1600 characters',
    ])
    // 100,000 names times 100,000 characters exceed the maximum length of a string.
    const bomb = createMail({
      subject: 's',
      text: '{{a}}'.repeat(100_000),
      html: null,
      variables: [{ name: 'a' }],
    })
    assert.deepEqual(renderProblems(bomb, { a: 'x'.repeat(100_000) }), [
      ': the text would exceed 1000000 characters',
    ])
    const escapes = createMail({ subject: 's', text: null, html: '{{a}}', variables: [{ name: 'a' }] })
    assert.deepEqual(renderProblems(escapes, { a: '<'.repeat(300_000) }), [
      ': the html would exceed 1000000 characters',
    ])
  })

  test('equals the result of splitting at the names, for any text and value', () => {
    const name = fc.constantFrom('a', 'b', 'long_name_1')
    const piece = fc.oneof(
      fc.string({ unit: 'binary' }).filter((one) => !one.includes('{') && !one.includes('}')),
      name.map((one) => ({ name: one })),
    )
    const values = fc.record({ a: fc.string(), b: fc.string(), long_name_1: fc.string() })
    fc.assert(
      fc.property(fc.array(piece), values, (pieces, given) => {
        const body = pieces.map((one) => (typeof one === 'string' ? one : `{{${one.name}}}`)).join('')
        const expected = pieces.map((one) => (typeof one === 'string' ? one : given[one.name])).join('')
        const template = { ...createText(body, 'a', 'b', 'long_name_1') }
        assert.deepEqual(findProblems(template), [])
        const rendered = renderTemplate(template, given)
        if (expected.trim() === '' || expected.length > 1600) assert.ok('problems' in rendered)
        else assert.equal((rendered as { text: string }).text, expected)
      }),
      createRunOptions(200),
    )
  })
})

describe('a template', () => {
  test('may declare variables without using them', () => {
    assert.deepEqual(findProblems(createMail()), [])
    assert.deepEqual(findProblems(createMail({ text: null })), [])
    assert.deepEqual(findProblems(createMail({ html: null })), [])
    assert.deepEqual(findProblems(createText('no names }} here }', 'a')), [])
    assert.deepEqual(findProblems(createMail({ html: '<style>@media x{a{color:{{name}}}}</style>' })), [])
  })

  for (const [what, template, problems] of [
    [
      'an undeclared name',
      createMail({ variables: [{ name: 'name' }] }),
      ['text: uses {{count}}, which is not declared'],
    ],
    [
      'undeclared names in each part',
      createMail({ variables: [{ name: 'count' }] }),
      ['subject', 'text', 'html'].map((part) => `${part}: uses {{name}}, which is not declared`),
    ],
    [
      'a name twice',
      createMail({ variables: [{ name: 'name' }, { name: 'count' }, { name: 'name' }] }),
      ['variables.2.name: name is declared twice'],
    ],
    ...[
      '{{',
      '{{Name}}',
      '{{a-b}}',
      '{{#if a}}',
      '{{/a}}',
      '{{>a}}',
      '{{!a}}',
      '{{ a',
      '{{a}',
      '{{a.b}}',
      '{{{a}}}',
      '{{\na}}',
      '{{a|b}}',
      '{{}}',
      `{{${' '.repeat(9)}a}}`,
      `{{${'a'.repeat(65)}}}`,
    ].map(
      (body) =>
        [
          `logic or a slip: ${body.slice(0, 20)}`,
          createText(body, 'a'),
          ['text: has {{ that does not start a valid {{name}}'],
        ] as const,
    ),
    ['no subject', createMail({ subject: null }), ['subject: is required']],
    ['neither text nor html', createMail({ text: null, html: null }), ['text: text or html is required']],
    [
      'a text message with a subject',
      { ...createText('x'), subject: 's', html: '<p>' },
      ['subject: is for email only', 'html: is for email only'],
    ],
    ['a text message without text', { channel: 'sms', variables: [] }, ['text: is required']],
    [
      'a default that breaks its subject',
      createMail({ variables: [{ name: 'name', default: 'a\nb' }, { name: 'count' }] }),
      ['variables.0.default: must be one line without control characters, because the subject uses it'],
    ],
  ] as const)
    test(`is rejected with ${what}`, () => assert.deepEqual(findProblems(template), [...problems]))

  test('with a megabyte of braces is parsed quickly', () => {
    const before = process.cpuUsage()
    for (const piece of ['{', '{{', '{{ ', '{{a', '{{a}', '}}', '{{a}}'])
      validateTemplate(createText(piece.repeat(1_000_000 / piece.length), 'a'))
    const { user } = process.cpuUsage(before)
    assert.ok(user < 2_000_000, `${user / 1000} ms`)
  })
})
