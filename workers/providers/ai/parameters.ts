import { findErrorReport } from './ai-calls.ts'
import type { Report } from './reports.ts'

/**
 * Adapts requests to models that refuse a parameter. No list of model names is complete, so the refusal itself counts. A
 * retry leaves out the parameter that it names.
 */

type Parameters = Readonly<Record<string, unknown>>

// Names of one parameter: a refusal of one of them is a reason to try the other.
const LENGTH_NAMES = ['max_tokens', 'max_completion_tokens'] as const

// Models whose refusals a thread remembers; beyond it, the oldest is forgotten.
const MAX_MODELS = 1000

/** Parameters that each model refuses, by provider, base URL and model. Each thread learns them itself. */
const refused = new Map<string, Set<string>>()

export interface AdaptableRequest {
  /** Identifies the model and its endpoint. */
  readonly key: string
  readonly parameters: Parameters
  /** Names of the parameters that may be left out. */
  readonly optional: readonly string[]
}

/**
 * Sends a request without the parameters that the model has refused before. If the provider refuses another one, retries
 * without it, and remembers that.
 */
export async function sendAdapted<T>(
  { key, parameters, optional }: AdaptableRequest,
  send: (parameters: Parameters) => Promise<T>,
): Promise<T> {
  const without = new Set(refused.get(key))
  const learned: string[] = []
  for (;;) {
    const adapted = leaveOut(parameters, without)
    try {
      const answer = await send(adapted)
      // Only success proves that the parameter was the cause.
      for (const name of learned) remember(key, name)
      return answer
    } catch (error) {
      const report = findErrorReport(error)
      const names = optional.flatMap(alternativesOf).filter((name) => name in adapted)
      const found = report === null ? null : findRefusedParameter(report, names)
      if (found === null) throw error
      without.add(found)
      // A value out of range says nothing about other values.
      if (!OUT_OF_RANGE.test(report!.message)) learned.push(found)
    }
  }
}

function remember(key: string, name: string): void {
  const names = refused.get(key) ?? new Set()
  names.add(name)
  refused.delete(key)
  refused.set(key, names)
  if (refused.size > MAX_MODELS) refused.delete(refused.keys().next().value!)
}

const isLengthName = (name: string): boolean => (LENGTH_NAMES as readonly string[]).includes(name)
const alternativesOf = (name: string): readonly string[] => (isLengthName(name) ? LENGTH_NAMES : [name])

function leaveOut(parameters: Parameters, without: ReadonlySet<string>): Parameters {
  const kept: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(parameters)) {
    const accepted = [name, ...alternativesOf(name)].find((each) => !without.has(each))
    if (accepted !== undefined) kept[accepted] = value
  }
  // Without a stream, its options are refused as well.
  if (kept.stream !== true) delete kept.stream_options
  return kept
}

const OUT_OF_RANGE =
  /\brange\b|\bbetween\b|\bat most\b|\bat least\b|maximum|\btoo (large|high|low)\b|less than|greater than|[<>]/i

/** Matches the names that providers use for a parameter. */
const wordsOf = (name: string): RegExp => new RegExp(`(?<![\\w.])(${ALIASES[name] ?? name})(?!\\w)`)

const ALIASES: Readonly<Record<string, string>> = {
  max_tokens: 'max_tokens|max_output_tokens|maxOutputTokens|maxTokens',
  stream_options: 'stream_options|include_usage|streamOptions',
}

/** Returns the parameter that a refusal names; null if it names none of these. */
function findRefusedParameter(report: Report, names: readonly string[]): string | null {
  if (report.status !== 400 && report.status !== 422) return null
  const { parameter, message } = report
  // A conversation that is too long for the model may also name the length that was asked for.
  if (isContextOverflow(report)) return null
  // A field's path may have more parts, such as `stream_options.include_usage`.
  const path = parameter?.split(/[.[\]]+/)
  if (path !== undefined) return names.find((name) => path.some((part) => wordsOf(name).test(part))) ?? null
  // The first name in the text is the refused one: a text may propose another one after it.
  const found = names
    .map((name) => ({ name, at: message.search(wordsOf(name)) }))
    .filter(({ at }) => at !== -1)
    .sort((a, b) => a.at - b.at)
  return found[0]?.name ?? null
}

// Messages of providers and local servers for input that exceeds the context window.
const CONTEXT_OVERFLOW =
  /context.?(length|window|size|limit)|maximum (context|prompt) length|prompt (is )?too (long|large)|input (is |text is )?too long|too many (input )?tokens|token count.*exceeds|exceeds?.*(token limit|number of tokens|context)|input tokens? exceed|tokens?.*too large for model|(reduce|shorten) the length of the (messages|prompt|input)|shorter prompt|greater than the context|prompt token count/i

/** True if a refusal says that the conversation is too long for the model, in any provider's words. */
export const isContextOverflow = ({ codes, message, status }: Report): boolean =>
  status === 413 ||
  codes.some((code) => /context_(length|size|window)|exceed_context|string_above_max_length/.test(code)) ||
  ((status === 400 || status === 422) && CONTEXT_OVERFLOW.test(message))
