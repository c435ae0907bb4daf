/** What the areas are for, by their names, as the reference introduces them. */
export const TAGS: Readonly<Record<string, string>> = {
  accounts: 'Accounts, sessions and what admins may do with them.',
  organizations: 'Organizations, their members and invites.',
  orgs: 'Organizations, their members and invites.',
  blog: 'Posts and tags; what is published is for everybody to read.',
  documents: 'Files, and the text of their pages.',
  comms: 'Mail, text messages and calls, sent once each.',
  jobs: 'What runs in the background: progress, ends, cancelling and doing again.',
  payments: 'Checkouts, transactions, refunds, subscriptions and disputes.',
  payment: 'Checkouts, transactions, refunds, subscriptions and disputes.',
  ai: 'Chat, conversations, agents and what they cost.',
  llm: 'Vendors and models, with their prices.',
  rag: 'Collections of texts that are searched by meaning.',
  voice: 'Speech synthesis and recognition: catalogs, settings and previews.',
  tasks: 'Named tasks on queues, and their results.',
  pages: 'Pages for people.',
  operations: 'For operators: health, measurements and this reference.',
}
