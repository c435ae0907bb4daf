import { escapeMarkup } from '../formats/markup-text.ts'

/**
 * Message templates: texts with `{{name}}` placeholders and no other syntax. Templates must declare every placeholder,
 * and callers may pass values only for declared names. A template library is unsuitable: most have conditions and
 * loops, and render a missing value as an empty text.
 */

export const TEMPLATE_CHANNELS = ['email', 'sms'] as const

/** The parts of a message that a template renders. */
const MESSAGE_PARTS = ['subject', 'text', 'html'] as const
type MessagePart = (typeof MESSAGE_PARTS)[number]

export interface Variable {
  readonly name: string
  /** Default value; absent if callers must pass a value. */
  readonly default?: string | undefined
}

export interface Template {
  readonly channel: (typeof TEMPLATE_CHANNELS)[number]
  readonly subject?: string | null | undefined
  readonly text?: string | null | undefined
  readonly html?: string | null | undefined
  readonly variables: readonly Variable[]
}

/** A rendered message. A part is null if the template lacks it; text messages have only `text`. */
export type RenderedMessage = Readonly<Record<MessagePart, string | null>>

/** A validation error and its location. */
export interface TemplateProblem {
  readonly path: readonly (string | number)[]
  readonly msg: string
}

/** Maximum lengths of the parts of a message, in characters. */
export const MAX_PART_LENGTHS: Readonly<
  Record<(typeof TEMPLATE_CHANNELS)[number], Readonly<Record<MessagePart, number>>>
> = {
  // 998 is the maximum line length of a mail (RFC 5322, section 2.1.1).
  email: { subject: 998, text: 1_000_000, html: 1_000_000 },
  sms: { subject: 0, text: 1600, html: 0 },
}

export const VARIABLE_NAME_PATTERN = /^[a-z][a-z0-9_]{0,63}$/
const PLACEHOLDER_PATTERN = /\{\{ {0,8}([a-z][a-z0-9_]{0,63}) {0,8}\}\}/

/** Matches one line without control characters, so that a header cannot be split in two. */
export const SINGLE_LINE_PATTERN = /^\P{Cc}*$/u
export const SINGLE_LINE_RULE = 'must be one line without control characters'

/**
 * Splits a text at its placeholders. The result alternates between texts and placeholder names, and starts with a text.
 */
const splitAtPlaceholders = (text: string): readonly string[] => text.split(PLACEHOLDER_PATTERN)
/** Returns the names of the placeholders in a text. */
export const placeholderNamesOf = (text: string): ReadonlySet<string> =>
  new Set(splitAtPlaceholders(text).filter((_, n) => n % 2 === 1))

/**
 * Returns the problems of a template: missing parts, parts of another channel, undeclared placeholders, and defaults
 * that would break the subject.
 */
export function validateTemplate(template: Template): readonly TemplateProblem[] {
  const { channel, variables, subject, text, html } = template
  const given = (part: MessagePart): boolean => template[part] != null
  const problems: TemplateProblem[] = []
  if (channel === 'sms')
    for (const part of MESSAGE_PARTS)
      if (given(part) !== (part === 'text'))
        problems.push({ path: [part], msg: part === 'text' ? 'is required' : 'is for email only' })
  if (channel === 'email' && !given('subject')) problems.push({ path: ['subject'], msg: 'is required' })
  if (channel === 'email' && text == null && html == null)
    problems.push({ path: ['text'], msg: 'text or html is required' })
  const declared = new Set<string>()
  for (const [index, { name }] of variables.entries()) {
    if (declared.has(name))
      problems.push({ path: ['variables', index, 'name'], msg: `${name} is declared twice` })
    declared.add(name)
  }
  for (const part of MESSAGE_PARTS)
    problems.push(...findPlaceholderProblems(part, template[part] ?? '', declared))
  const inSubject = placeholderNamesOf(subject ?? '')
  for (const [index, variable] of variables.entries())
    if (inSubject.has(variable.name) && !SINGLE_LINE_PATTERN.test(variable.default ?? ''))
      problems.push({
        path: ['variables', index, 'default'],
        msg: `${SINGLE_LINE_RULE}, because the subject uses it`,
      })
  return problems
}

function findPlaceholderProblems(
  part: MessagePart,
  text: string,
  declared: ReadonlySet<string>,
): readonly TemplateProblem[] {
  const undeclared = [...placeholderNamesOf(text)].filter((name) => !declared.has(name))
  // Also rejects `{{{name}}}`, which has another meaning in template libraries.
  const pieces = splitAtPlaceholders(text)
  const stray = pieces.find(
    (piece, n) => n % 2 === 0 && (piece.includes('{{') || (piece.endsWith('{') && n < pieces.length - 1)),
  )
  return [
    ...undeclared.map((name) => ({ path: [part], msg: `uses {{${name}}}, which is not declared` })),
    ...(stray === undefined ? [] : [{ path: [part], msg: 'has {{ that does not start a valid {{name}}' }]),
  ]
}

/**
 * Renders a template; escapes values in HTML. Returns the problems instead if values are missing, unknown or too long,
 * would break the subject, or would leave a part empty.
 */
export function renderTemplate(
  template: Template,
  values: Readonly<Record<string, string>>,
): RenderedMessage | { readonly problems: readonly TemplateProblem[] } {
  const { channel, variables, subject } = template
  const declared = new Map(variables.map((variable) => [variable.name, variable] as const))
  const inSubject = placeholderNamesOf(subject ?? '')
  const problems: TemplateProblem[] = []
  for (const name of Object.keys(values))
    if (!declared.has(name)) problems.push({ path: [name], msg: 'is not a variable of the template' })
    else if (inSubject.has(name) && !SINGLE_LINE_PATTERN.test(values[name]!))
      problems.push({ path: [name], msg: `${SINGLE_LINE_RULE}, because the subject uses it` })
  const known = new Map<string, string>()
  for (const [name, variable] of declared) {
    const value = Object.hasOwn(values, name) ? values[name] : variable.default
    if (value === undefined) problems.push({ path: [name], msg: 'is required by the template' })
    else known.set(name, value)
  }
  if (problems.length > 0) return { problems }
  const inHtml = new Map([...known].map(([name, value]) => [name, escapeMarkup(value)] as const))
  const renderPart = (part: MessagePart): string | null => {
    const longest = MAX_PART_LENGTHS[channel][part]
    const text = fillPlaceholders(template[part] ?? null, part === 'html' ? inHtml : known, longest)
    if (text === undefined) problems.push({ path: [], msg: `the ${part} would exceed ${longest} characters` })
    else if (text !== null && text.trim() === '')
      problems.push({ path: [], msg: `the ${part} would be empty` })
    return text ?? null
  }
  const rendered = { subject: renderPart('subject'), text: renderPart('text'), html: renderPart('html') }
  return problems.length > 0 ? { problems } : rendered
}

/**
 * Fills in values; undefined if the text would be too long. Computes the length first, because a text may contain a
 * long value 100,000 times.
 */
function fillPlaceholders(
  text: string | null,
  values: ReadonlyMap<string, string>,
  longest: number,
): string | null | undefined {
  if (text === null) return null
  const pieces = splitAtPlaceholders(text).map((piece, n) => (n % 2 === 0 ? piece : values.get(piece)!))
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0)
  return length > longest ? undefined : pieces.join('')
}
