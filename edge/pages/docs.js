window.SwaggerUIBundle({
  url: '/openapi.json',
  dom_id: '#reference',
  deepLinking: true,
  defaultModelsExpandDepth: 0,
  // No badge: it would ask a validator elsewhere.
  validatorUrl: null,
})
