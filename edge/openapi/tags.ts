/** Descriptions of the areas in the reference, by name. */
export const TAGS: Readonly<Record<string, string>> = {
  accounts: 'Accounts, sessions and their administration.',
  organizations: 'Organizations, their members and invites.',
  orgs: 'Organizations, their members and invites.',
  blog: 'Posts and tags; published posts are public.',
  documents: 'Files, and the text of their pages.',
  comms: 'Email, text messages and calls, each sent only once.',
  jobs: 'Background jobs: progress, results, cancellation and retries.',
  payments: 'Checkouts, transactions, refunds, subscriptions and disputes.',
  payment: 'Checkouts, transactions, refunds, subscriptions and disputes.',
  ai: 'Chat, conversations, agents and their usage.',
  llm: 'Model vendors and models, with their prices.',
  rag: 'Text collections with semantic search.',
  voice: 'Speech synthesis and recognition: catalogs, settings and previews.',
  tasks: 'Named tasks on queues, and their results.',
  pages: 'HTML pages.',
  operations: 'For operators: health, metrics and this reference.',
}
