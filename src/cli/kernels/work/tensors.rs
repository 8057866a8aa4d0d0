//! Tensors of a kernel: how many elements of what, and how they are drawn.

use vramscope_benchmark::Precision;

/// How an input is drawn; the seed is its place among the inputs, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fill {
    /// Numbers around `offset`, at most `scale` away, of the input's type.
    Uniform {
        /// Half the width of the range.
        scale: f32,
        /// Its middle.
        offset: f32,
    },
    /// 32-bit classes below this.
    Labels(u64),
    /// Bytes, one for each negative number drawn, else zero.
    Mask,
}

/// What elements are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element {
    /// Of the kernel's type.
    Own,
    /// Of this type, whatever the kernel's.
    Of(Precision),
    /// Bytes of 0 and 1.
    Byte,
    /// 32-bit integers.
    Label,
}

/// A tensor that is given.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Input {
    /// Its elements.
    pub elements: u64,
    /// What they are.
    pub element: Element,
    /// How they are drawn.
    pub fill: Fill,
}

/// A tensor that is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Output {
    /// Its elements.
    pub elements: u64,
    /// What they are.
    pub element: Element,
}

impl Element {
    /// The type of numbers, where they are numbers.
    pub const fn precision(self, own: Precision) -> Option<Precision> {
        match self {
            Self::Own => Some(own),
            Self::Of(precision) => Some(precision),
            Self::Byte | Self::Label => None,
        }
    }

    /// Bytes of one.
    pub const fn width(self, own: Precision) -> u64 {
        match self {
            Self::Own => own.width(),
            Self::Of(precision) => precision.width(),
            Self::Byte => 1,
            Self::Label => 4,
        }
    }
}

impl Input {
    /// The standard deviation of inputs is 1, as `torch.randn`'s: uniform from −√3 to √3.
    pub(super) const UNIT: f32 = 1.732_050_8;

    pub(super) const fn unit(elements: u64) -> Self {
        Self::around(elements, Self::UNIT, 0.0)
    }

    pub(super) const fn around(elements: u64, scale: f32, offset: f32) -> Self {
        Self {
            elements,
            element: Element::Own,
            fill: Fill::Uniform { scale, offset },
        }
    }

    /// fp32, whatever the kernel's type: statistics of rows.
    pub(super) const fn floats(elements: u64, scale: f32, offset: f32) -> Self {
        Self {
            elements,
            element: Element::Of(Precision::Fp32),
            fill: Fill::Uniform { scale, offset },
        }
    }

    pub(super) const fn labels(elements: u64, classes: u64) -> Self {
        Self {
            elements,
            element: Element::Label,
            fill: Fill::Labels(classes),
        }
    }

    pub(super) const fn mask(elements: u64) -> Self {
        Self {
            elements,
            element: Element::Byte,
            fill: Fill::Mask,
        }
    }

    /// Bytes in memory.
    pub const fn bytes(&self, precision: Precision) -> u64 {
        self.elements * self.element.width(precision)
    }
}

impl Output {
    pub(super) const fn of(elements: u64) -> Self {
        Self {
            elements,
            element: Element::Own,
        }
    }

    pub(super) const fn float(elements: u64) -> Self {
        Self {
            elements,
            element: Element::Of(Precision::Fp32),
        }
    }

    pub(super) const fn bytes_of(elements: u64) -> Self {
        Self {
            elements,
            element: Element::Byte,
        }
    }

    /// Of the other width: fp32 of halves, bf16 of fp32, as autocast casts.
    pub(super) const fn cast(elements: u64, from: Precision) -> Self {
        let to = match from {
            Precision::Bf16 | Precision::Fp16 => Precision::Fp32,
            Precision::Tf32 | Precision::Fp32 => Precision::Bf16,
        };
        Self {
            elements,
            element: Element::Of(to),
        }
    }

    /// Bytes in memory.
    pub const fn bytes(&self, precision: Precision) -> u64 {
        self.elements * self.element.width(precision)
    }
}
