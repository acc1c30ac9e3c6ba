// Ten durable steps, one after another, in Restate's own SDK.
import * as restate from "@restatedev/restate-sdk";

// The SDK asks for Node 22; an older one lacks only this.
Promise.withResolvers ??= function () {
  let resolve, reject;
  const promise = new Promise((yes, no) => ([resolve, reject] = [yes, no]));
  return { promise, resolve, reject };
};

const ten = restate.service({
  name: "ten",
  handlers: {
    run: async (ctx, event) => {
      let last;
      for (let step = 0; step < 10; step++) {
        last = await ctx.run(`s${step}`, () => ({ message: "x" }));
      }
      return { id: event.id, last };
    },
  },
});

restate.endpoint().bind(ten).listen(Number(process.argv[2]));
