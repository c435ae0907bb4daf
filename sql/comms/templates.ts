import { z } from 'zod'
import { type Query, sql } from '../db.ts'
import { buildArrayText, type PageValues } from '../reads/lists.ts'
import type { ReadStatement } from '../reads/reader.ts'

/** Message templates. */

export interface TemplateRow {
  readonly channel: 'email' | 'sms'
  readonly subject: string | null
  readonly text: string | null
  readonly html: string | null
  readonly variables: readonly { readonly name: string; readonly default?: string | undefined }[]
}

const Json = z.object({ json: z.string() })
/** Adds a template. @throws fail('template.name_taken') */
export const insertTemplate = (name: string, t: TemplateRow): Query<{ json: string }> =>
  sql.type(Json)`
    insert into comms_template as t (name, channel, subject, text, html, variables)
    values (${name}, ${t.channel}, ${t.subject}, ${t.text}, ${t.html}, ${JSON.stringify(t.variables)}::jsonb)
    returning comms_template_json(t)::text as json`

/** Replaces a template, except its name; no row if the template does not exist. */
export const replaceTemplate = (name: string, t: TemplateRow): Query<{ json: string }> =>
  sql.type(Json)`
    update comms_template t set channel = ${t.channel}, subject = ${t.subject}, text = ${t.text}, html = ${t.html},
      variables = ${JSON.stringify(t.variables)}::jsonb, updated_at = now()
    where t.name = ${name} returning comms_template_json(t)::text as json`

/** Deletes a template; no row if the template does not exist. */
export const deleteTemplate = (name: string): Query<{ name: string }> =>
  sql.type(z.object({ name: z.string() }))`delete from comms_template where name = ${name} returning name`

export const TEMPLATE_ORDER = { 't.name': 'text' } as const

/** Templates sorted by name, without their texts, which can be long. */
export const readTemplates: ReadStatement<PageValues> = {
  name: 'comms_templates',
  text: buildArrayText({
    table: 'comms_template',
    row: 't',
    id: ['name'],
    parameters: 0,
    where: 'true',
    order: TEMPLATE_ORDER,
    hasPageNumbers: false,
    direction: 'asc',
    item: `json_build_object('name', t.name, 'channel', t.channel, 'subject', t.subject, 'variables', t.variables,
      'created_at', iso(t.created_at), 'updated_at', iso(t.updated_at))`,
  }),
}

export const readTemplate: ReadStatement<[name: string]> = {
  name: 'comms_template',
  text: `select comms_template_json(t)::text from comms_template t where t.name = $1`,
}

const Row = z.object({
  channel: z.enum(['email', 'sms']),
  subject: z.string().nullable(),
  text: z.string().nullable(),
  html: z.string().nullable(),
  variables: z.array(z.object({ name: z.string(), default: z.string().optional() })),
})

/** Finds a template by its name. */
export const findTemplate = (name: string): Query<z.output<typeof Row>> =>
  sql.prepared('comms_template_row', Row)`
    select channel, subject, text, html, variables from comms_template where name = ${name}`
