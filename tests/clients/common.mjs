// What the tests of all clients share: the server's address, and what the bundled model is known to say.
export const url = process.env.HADAL_URL;
export const france = 'What is the capital of France?';
export const paris = 'The capital of France is Paris.';
export const sum = 'What is 7 + 5?';
export const reasoning = 'I start with 7 and add 5. The result is 11.';
export const sumAnswer = '7 + 5 = 11.';
export const both = 'Please add 957 and 580. Please add 365 and 664.';
export const bothAnswer = 'The sum of 957 and 580 is 1537. The sum of 365 and 664 is 1029.';
export const description = 'Add two numbers.';
export const schema = {
  type: 'object',
  properties: {a: {type: 'integer'}, b: {type: 'integer'}},
  required: ['a', 'b'],
};
// As the model has seen results spelled.
export const add = ({a, b}) => `{"sum": ${a + b}}`;
// An answer that goes on for long, to be cut off.
export const story = 'Tell me a story about a cat.';
