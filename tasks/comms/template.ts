import { escaped } from '../markup-text.ts'

/**
 * Templates of messages: text with `{{name}}` in place of values. Nothing else means anything, and nothing is ever left out: each
 * name is declared, each value is one of a declared name. Libraries of this kind have conditions and loops, and most leave empty
 * what they are not given.
 */

export const TEMPLATE_CHANNELS = ['email', 'sms'] as const

/** The parts of a message that are rendered. */
const PARTS = ['subject', 'text', 'html'] as const
type Part = (typeof PARTS)[number]

export interface Variable {
  readonly name: string
  /** The value where none is given; absent: it has to be. */
  readonly default?: string | undefined
}

export interface Template {
  readonly channel: (typeof TEMPLATE_CHANNELS)[number]
  readonly subject?: string | null | undefined
  readonly text?: string | null | undefined
  readonly html?: string | null | undefined
  readonly variables: readonly Variable[]
}

/** What a message of a template consists of; of a text message only `text`. */
export type Rendered = Readonly<Record<Part, string | null>>

/** What is wrong, and where. */
export interface Problem {
  readonly path: readonly (string | number)[]
  readonly msg: string
}

/** The longest parts of a message, in characters. */
export const LONGEST: Readonly<Record<(typeof TEMPLATE_CHANNELS)[number], Readonly<Record<Part, number>>>> = {
  // 998 is the longest line of a mail (RFC 5322, section 2.1.1).
  email: { subject: 998, text: 1_000_000, html: 1_000_000 },
  sms: { subject: 0, text: 1600, html: 0 },
}

export const VARIABLE_NAME = /^[a-z][a-z0-9_]{0,63}$/
const PLACEHOLDER = /\{\{ {0,8}([a-z][a-z0-9_]{0,63}) {0,8}\}\}/

/** One line without control characters: a header that cannot become two. */
export const LINE = /^\P{Cc}*$/u
export const LINE_MSG = 'must be one line without control characters'

/** Text and names by turns, text first. */
const piecesOf = (text: string): readonly string[] => text.split(PLACEHOLDER)
const namesIn = (text: string): ReadonlySet<string> => new Set(piecesOf(text).filter((_, n) => n % 2 === 1))

/** What a template must not have: parts of another channel, placeholders of undeclared names, defaults that break its subject. */
export function templateProblems(template: Template): readonly Problem[] {
  const { channel, variables, subject, text, html } = template
  const given = (part: Part): boolean => template[part] != null
  const problems: Problem[] = []
  if (channel === 'sms')
    for (const part of PARTS)
      if (given(part) !== (part === 'text'))
        problems.push({ path: [part], msg: part === 'text' ? 'is required' : 'is for email only' })
  if (channel === 'email' && !given('subject')) problems.push({ path: ['subject'], msg: 'is required' })
  if (channel === 'email' && text == null && html == null)
    problems.push({ path: ['text'], msg: 'text or html is required' })
  const declared = new Set<string>()
  for (const [n, { name }] of variables.entries()) {
    if (declared.has(name))
      problems.push({ path: ['variables', n, 'name'], msg: `${name} is declared twice` })
    declared.add(name)
  }
  for (const part of PARTS) problems.push(...placeholderProblems(part, template[part] ?? '', declared))
  const inSubject = namesIn(subject ?? '')
  for (const [n, variable] of variables.entries())
    if (inSubject.has(variable.name) && !LINE.test(variable.default ?? ''))
      problems.push({ path: ['variables', n, 'default'], msg: `${LINE_MSG}, since the subject has it` })
  return problems
}

function placeholderProblems(part: Part, text: string, declared: ReadonlySet<string>): readonly Problem[] {
  const undeclared = [...namesIn(text)].filter((name) => !declared.has(name))
  // `{{{name}}}`, too, which means something else where it means anything.
  const pieces = piecesOf(text)
  const stray = pieces.find(
    (piece, n) => n % 2 === 0 && (piece.includes('{{') || (piece.endsWith('{') && n < pieces.length - 1)),
  )
  return [
    ...undeclared.map((name) => ({ path: [part], msg: `has {{${name}}}, which is not declared` })),
    ...(stray === undefined ? [] : [{ path: [part], msg: 'has {{ that begins no {{name}}' }]),
  ]
}

/**
 * Renders a template, or says what is wrong with the values: missing or unknown ones, what would break a subject, too much of it.
 * Values in HTML are escaped.
 */
export function render(
  template: Template,
  values: Readonly<Record<string, string>>,
): Rendered | { readonly problems: readonly Problem[] } {
  const { channel, variables, subject } = template
  const declared = new Map(variables.map((variable) => [variable.name, variable] as const))
  const inSubject = namesIn(subject ?? '')
  const problems: Problem[] = []
  for (const name of Object.keys(values))
    if (!declared.has(name)) problems.push({ path: [name], msg: 'is no variable of the template' })
    else if (inSubject.has(name) && !LINE.test(values[name]!))
      problems.push({ path: [name], msg: `${LINE_MSG}, since the subject has it` })
  const known = new Map<string, string>()
  for (const [name, variable] of declared) {
    const value = Object.hasOwn(values, name) ? values[name] : variable.default
    if (value === undefined) problems.push({ path: [name], msg: 'is required by the template' })
    else known.set(name, value)
  }
  if (problems.length > 0) return { problems }
  const inHtml = new Map([...known].map(([name, value]) => [name, escaped(value)] as const))
  const filled = (part: Part): string | null => {
    const longest = LONGEST[channel][part]
    const text = fill(template[part] ?? null, part === 'html' ? inHtml : known, longest)
    if (text === undefined)
      problems.push({ path: [], msg: `make the ${part} longer than ${longest} characters` })
    else if (text !== null && text.trim() === '') problems.push({ path: [], msg: `leave the ${part} empty` })
    return text ?? null
  }
  const rendered = { subject: filled('subject'), text: filled('text'), html: filled('html') }
  return problems.length > 0 ? { problems } : rendered
}

/** Undefined: it would be too long. Measured first: a value can be long, and occur a hundred thousand times. */
function fill(
  text: string | null,
  values: ReadonlyMap<string, string>,
  longest: number,
): string | null | undefined {
  if (text === null) return null
  const pieces = piecesOf(text).map((piece, n) => (n % 2 === 0 ? piece : values.get(piece)!))
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0)
  return length > longest ? undefined : pieces.join('')
}
