import { queryRows } from '../stack.ts'

/** Rows of a seeded database that requests refer to, and lengths of its lists. */
export interface Targets {
  readonly word: Readonly<Record<'common' | 'frequent' | 'medium' | 'rare' | 'unique' | 'part', string>>
  readonly total: Readonly<
    Record<
      | 'accounts'
      | 'audit'
      | 'organizations'
      | 'memberships'
      | 'members'
      | 'invites'
      | 'documents'
      | 'trashed'
      | 'published'
      | 'posts'
      | 'transactions',
      number
    >
  >
  readonly document: Readonly<Record<'big' | 'small' | 'pictured' | 'longest', number>>
  readonly job: Readonly<Record<'ended' | 'waiting' | 'running' | 'named' | 'batch', string>>
  readonly schedule: string
  readonly queue: string
  readonly exported: string
  readonly send: string
  readonly post: string
  readonly rareTag: string
  readonly transaction: number
  readonly dispute: number
  readonly conversation: Readonly<Record<'big' | 'small' | 'longest', string>>
  readonly message: string
  readonly transcription: string
  readonly speech: string
  readonly model: { readonly vendor: string; readonly model_id: string }
}

const middle = (of: string): string =>
  `(select id from (${of}) found offset (select count(*) / 2 from (${of}) counted) limit 1)`

const documentOf = (owner: number, more = 'true'): string =>
  middle(
    `select id from document where owner_id = ${owner} and deleted_at is null and page_count > 1 and ${more} order by id`,
  )
const jobOf = (which: string): string =>
  `(select id from job where owner_id = 2 and ${which} order by id desc limit 1)`
const conversationOf = (owner: number): string =>
  middle(`select id from ai_conversation where owner_id = ${owner} order by id`)

// Account 2 is the big owner, account 3 the small owner, and organization 1 belongs to the big owner.
const TARGETS_QUERY = `select json_build_object(
  'word', json_build_object('common', growth.word(1), 'frequent', growth.word(10), 'medium', growth.word(100),
    'rare', growth.word(2999), 'part', substr(growth.word(2), 2, 4), 'unique', (
      select substring(text from 'inv[0-9]+') from document_page p join document d on d.id = p.document_id
      where d.owner_id = 2 and d.deleted_at is null and text ~ 'inv' order by p.document_id limit 1)),
  'total', json_build_object('accounts', (select count(*) from account), 'audit', (select count(*) from audit_event),
    'organizations', (select count(*) from organization), 'memberships', (select count(*) from organization_member),
    'members', (select count(*) from organization_member where organization_id = 1),
    'invites', (select count(*) from organization_invite where organization_id = 1 and status = 'pending'),
    'documents', (select count(*) from document d where owner_id = 2 and deleted_at is null
      and not exists (select from document s where s.supersedes_id = d.id and s.deleted_at is null)),
    'trashed', (select count(*) from document where owner_id = 2 and deleted_at is not null),
    'published', (select count(*) from blog_post where status = 'published'), 'posts', (select count(*) from blog_post),
    'transactions', (select count(*) from payment_transaction where customer_id = 1 and shown)),
  'document', json_build_object('big', ${documentOf(2)}, 'small', ${documentOf(3)},
    'pictured', ${documentOf(2, 'exists (select from document_page p where p.document_id = document.id and p.page_number = 1 and p.image is not null)')},
    'longest', (select min(id) from document where owner_id = 2 and deleted_at is null)),
  'job', json_build_object('ended', ${jobOf(`status = 'done'`)}, 'waiting', ${jobOf(`status = 'available'`)},
    'running', ${jobOf(`status = 'running'`)}, 'named', ${jobOf(`status = 'done' and queue = 'load_test'`)},
    'batch', ${jobOf(`name = 'jobs.batch'`)}),
  'queue', ${middle('select name as id from worker_queue where account_id = 2 order by name')},
  'schedule', ${middle('select id from schedule where owner_id = 2 order by created_at, id')},
  'exported', (select id from account_export where account_id = 2 order by id limit 1),
  'send', ${middle('select id from comms_send where owner_id = 2 order by id')},
  'post', (select slug from blog_post where status = 'published' order by id offset 20 limit 1),
  'rareTag', (select slug from blog_tag order by id desc limit 1),
  'transaction', ${middle('select id from payment_transaction where customer_id = 1 and shown order by id')},
  'dispute', (select d.id from payment_dispute d join payment_transaction t on t.id = transaction_id
    where t.customer_id = 1 order by d.id limit 1),
  'conversation', json_build_object('big', ${conversationOf(2)}, 'small', ${conversationOf(3)},
    'longest', (select id from ai_conversation where owner_id = 2 order by created_at limit 1)),
  'message', (select id from ai_message where role = 'assistant' and conversation_id = ${conversationOf(2)} order by ordinal limit 1),
  'transcription', ${middle('select id from voice_transcription where owner_id = 2 order by created_at, id')},
  'speech', ${middle('select job_id as id from voice_preview where owner_id = 2 order by used_at, job_id')},
  'model', (select json_build_object('vendor', vendor, 'model_id', model_id) from llm_price order by vendor, model_id limit 1)
) as places`

/** Finds the targets in a seeded database. */
export async function findTargets(url: string): Promise<Targets> {
  const [row] = await queryRows(url, TARGETS_QUERY)
  return row!.places as Targets
}
