import { type Queries, readWithin } from '../../../sql/db.ts'
import { fail } from '../../../sql/errors.ts'
import { readTemplate } from '../../../sql/templates.ts'
import { type Rendered, render, type Template } from '../../../tasks/comms/template.ts'
import { invalid, refusal } from '../../pipeline/input.ts'

/** Renders the templates that requests name. */

interface Asked {
  readonly template: string
  readonly variables?: Readonly<Record<string, string>> | undefined
}

/**
 * Renders the parts of a message for a channel from the current version of its template.
 * A template of another channel is invalid.
 * @throws fail('template.missing'), request.invalid
 */
export async function renderedFor(
  tx: Queries,
  channel: Template['channel'],
  { template: name, variables = {} }: Asked,
): Promise<Rendered> {
  const template = templateOf(name, await readWithin(tx, readTemplate, [name]))
  if (template.channel !== channel) throw invalid('body', 'template', `is for ${template.channel}`, 'custom')
  return filled(template, variables)
}

/** Parses a template that was read; null: there is none. @throws fail('template.missing') */
export function templateOf(name: string, text: string | null): Template {
  if (text === null) throw fail('template.missing', { name })
  return JSON.parse(text) as Template
}

/** Renders a template. @throws request.invalid, with each value that is missing, unknown or invalid. */
export function filled(template: Template, variables: Readonly<Record<string, string>>): Rendered {
  const rendered = render(template, variables)
  if (!('problems' in rendered)) return rendered
  throw refusal(
    rendered.problems.map(({ path, msg }) => ({ loc: ['body', 'variables', ...path], msg, type: 'custom' })),
  )
}
