/** Errors of posts, tags and imports: part of the table in `errors.ts`. */
export const blogErrors = {
  'post.missing': { detail: 'Post not found' },
  'post.slug_taken': { detail: 'A post with this slug already exists' },
  'post.published': { detail: 'The post has been public, so it cannot be scheduled' },
  'revision.missing': { detail: 'Revision not found' },
  'preview.expired': { detail: 'This preview link does not exist or is no longer valid' },
  'tag.missing': { detail: 'Tag not found' },
  'tag.name_taken': { detail: 'A tag with this name already exists' },
  'tag.slug_taken': { detail: 'A tag with this slug already exists' },
  'import.file_required': { detail: 'The form must include a file in the field "file"' },
  'import.file_type': {
    detail: 'The file name must end with .md, .markdown, .mdx, .zip, .json or .xml',
  },
  'import.encoding': { detail: 'The file is not valid UTF-8' },
  'import.refused': { detail: 'The file cannot be imported: {reason}' },
  'import.too_complex': { detail: 'The file cannot be imported: it {reason}' },
  'import.conflict': {
    detail: 'Nothing was imported: a post with the slug {slug} already exists',
  },
  'import.bytes_missing': { detail: 'The uploaded file is missing from storage' },
} as const
