/** The kind of the event for each stored piece; its data is `{generation}`. */
export const CHUNK_EVENT = 'chunk'
